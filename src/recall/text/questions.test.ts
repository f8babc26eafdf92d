import { describe, expect, it } from 'vitest'
import { isQuestion } from './questions.ts'

describe('a question without its mark', () => {
  it.each([
    'what is the name of the dog that my sister adopted', 'whats the name of my dog', 'What’s the gate code', 'What did the doctor say.',
    'which hotel did we book in Oslo', 'how many children does she have', 'how do I reset the router', 'who adopted the beagle', 'which bus goes to the airport',
    'what happened to the blue car', 'what color is the car', 'hey, what time is my flight', 'Hi! What is my name', 'and where is it', 'why not take the train',
  ])('begins with an interrogative and a verb: %s', (text) => expect(isQuestion(text)).toBe(true))

  it.each([
    'do you remember where I parked', 'Is the gate code 4711', 'did Anna call back', 'does Peter like fish', "don't you remember my name", 'have you seen my keys',
    'are there any vegetarian options', 'was my order shipped', 'should we book the hotel', 'is Biscuit a beagle', 'will Maria be at the party', 'Can you tell me the gate code',
  ])('has its verb before its subject: %s', (text) => expect(isQuestion(text)).toBe(true))

  it.each(['tell me what the gate code is', 'Remind me who called yesterday', 'tell me about the trip', 'any idea where my keys are'])('is a request for information: %s', (text) => expect(isQuestion(text)).toBe(true))

  it.each(['wie heißt der Hund meiner Schwester', 'was kostet das Zimmer', 'comment s’appelle mon chien', 'cómo se llama mi perro', '¿Cómo se llama mi perro', 'waar woont Anna', 'где мой ключ', '犬の名前は何ですか', '你知道吗', 'Ist das so？'])(
    'is one in another language: %s', (text) => expect(isQuestion(text)).toBe(true),
  )
})

describe('a statement', () => {
  it.each([
    'When we moved to Oslo, we bought a cabin.', 'When I was a child I had a dog', 'What I like most is pizza.', 'Where we live it is cold in winter', 'How we met is a long story',
    'Who I am is not important', 'What a beautiful dog', 'I know what the gate code is', 'The gate code is 4711.', 'Which reminds me: the rent is due.',
  ])('has its subject first: %s', (text) => expect(isQuestion(text)).toBe(false))

  it.each([
    'Do not call me before nine', 'Do call Anna tomorrow.', 'Have a nice day', 'Had a great time in Rome', 'Has the flu', 'Does not eat meat', 'Was in Paris last week', 'Is fine',
    'Would rather sit by the window', 'Have two children, Ben and Lea', 'Will Smith is an actor', 'Will is my brother', 'May is the month of our wedding', 'Can openers are in the drawer', 'Remind me to buy milk on Friday',
  ])('may begin with a verb: %s', (text) => expect(isQuestion(text)).toBe(false))

  it.each(['Wie gesagt, der Code ist 4711.', 'Wo wir wohnen, ist es kalt.', 'Was für ein Tag, sagte sie.'])('may begin with an interrogative of another language: %s', (text) => expect(isQuestion(text)).toBe(false))

  it('with a question after it is a question only where the question has its mark', () => {
    expect(isQuestion('My sister adopted a beagle. what should I buy for it')).toBe(false)
    expect(isQuestion('My sister adopted a beagle. What should I buy for it?')).toBe(true)
  })
})

it('needs time in proportion to the text at most', () => {
  const long = ['who ' + 'a'.repeat(100_000) + '!', 'which ' + 'ab '.repeat(30_000) + '!', 'and '.repeat(30_000) + 'x', 'what ' + "a-'".repeat(50_000), '. '.repeat(50_000)]
  for (const text of long) expect(isQuestion(text)).toBe(false)
})
