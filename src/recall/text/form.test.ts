import { describe, expect, it } from 'vitest'
import { formOf, forms } from './form.ts'

describe('the form of a passage', () => {
  it.each([
    'find the spare key please', 'Please find my passport number.', 'look up the gate code', 'search for the invoice of May', 'show me the list', 'list all my orders', 'spare key location please',
    'I need to know where the key is', "I'd like to know my balance", 'I was wondering if the shop is open', 'tell me the code again', 'help me find my keys', 'Let me know which one you mean.',
    'Hi! Can you find the key?', 'Where is it', 'Please provide more details.', "I don't know. Can you tell me more?", 'remind me who called',
  ])('is a request where each sentence asks: %s', (text) => expect(formOf(text)).toBe(forms.request))

  it.each([
    "I don't know.", "I don't know, sorry (3).", 'Sorry, I do not know where the spare key is.', "I'm sorry, but I don't have any information about your sister's dog.", "I couldn't find anything about that.",
    'I have no idea', 'No idea, sorry.', "I'm not sure about that.", 'There is no record of an order.', "You haven't told me your name yet.", 'Unfortunately, I cannot answer that.', 'I can’t remember the name', 'Dunno',
    'I have no information on that. Sorry!', 'Das weiß ich leider nicht.', 'Keine Ahnung', 'No lo sé.', 'je ne sais pas', 'One moment.', 'Sure, let me check.', "I'll look it up.", '不知道', '分かりません',
  ])('is an answer without content where each sentence says that nothing is known: %s', (text) => expect(formOf(text)).toBe(forms.emptyAnswer))

  it.each([
    "I don't know how to swim.", "I don't have a dog.", "I don't eat fish, but I like eggs.", "I don't know the exact day, it was in May.", "I don't know, but the flowerpot is a good place to look.",
    'You have never been to Oslo.', 'There is no bus on Sundays.', 'I have no sister.', 'We found the key under the flowerpot.', 'I am not a doctor.', 'I cannot eat nuts.', 'No sugar for me.',
    'Remind me to buy milk on Friday', 'Remember that the code is 4711.', 'Check the oven at nine.', 'Finding a flat took a year.', 'Search engines are my job.', 'Sorry about the noise, the neighbors moved in on Monday.',
    'Listen, the code is 4711.', 'Let me see: the code is 4711.', 'I will see Ada on Monday.', "I'll check the oven at nine.", 'I want to see Rome before I am fifty.', 'I wonder at nothing. The dog is called Biscuit.', 'Ich weiß, der Code ist 4711.',
  ])('is a statement where one sentence states something: %s', (text) => expect(formOf(text)).toBe(forms.statement))

  it('is a statement with a question where a question ends it', () => expect(formOf('My sister adopted a beagle. What should I buy for it?')).toBe(forms.withQuestion))

  it('needs time in proportion to the text at most', () => {
    const long = ['sorry '.repeat(30_000) + 'x', 'find ' + 'a'.repeat(100_000), 'I have no ' + 'a '.repeat(40_000), "I don't know, ".repeat(8_000), 'and sorry, '.repeat(20_000), "I don't have " + "a-'".repeat(50_000), ', '.repeat(50_000)]
    for (const text of long) formOf(text)
  })
})
