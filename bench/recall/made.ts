import type { Stored, StoredTurn } from './conversations.ts'

/*
 * A second set for `bench:recall`, made by rule: mailboxes of a small company, with threads about services, projects and people. Facts are
 * planted in short and long messages among talk with the same words; some are updated later, denied, dated relative to their message,
 * answered in the next message, or said about several people. Each question knows which messages answer it.
 */

const services = `the invoice service|the image resizer|the login page|the search index|the mail gateway|the mobile app|the report generator
the chat widget|the payment form|the label printer|the booking calendar|the map tiles|the price feed|the support portal`.split(/[|\n]/)
const people = 'Wiebke|Torvald|Imogen|Ruslan|Nkechi|Hamza|Sunniva|Bartosz|Oyelaran|Pasha|Leocadia|Emrys|Yuki|Anselm'.split('|')
const places = 'Rotterdam|Gdansk|Montreal|Osaka|Tallinn|Porto|Bergen|Leipzig|Nairobi|Lyon|Quito|Perth'.split('|')
const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const months = 'January|February|March|April|May|June|July|August|September|October|November|December'.split('|')
const day = 86_400_000

interface Kind {
  entities: readonly string[]
  values: readonly string[]
  /** Ways to state the fact: `E` stands for the entity, `V` for the value. */
  stated: readonly string[]
  /** A question with the words of the statement, and one with others. */
  asked: string
  paraphrased: string
  /** Ways to state that the value changed, and to ask for the present one. `W` stands for the former value. */
  updated?: readonly string[]
  askedNow?: string
  /** A denial of a value, and a question for it. */
  denied?: string
  askedDenied?: string
  /** A message that asks for it, and a short answer. */
  inquiry?: string
  answer?: string
}

const kinds: readonly Kind[] = [
  {
    entities: services, values: places,
    stated: ['We run E in V.', 'E lives in the racks in V, next to the old cluster.', 'All machines of E stand in V.'],
    asked: 'Where do we run E?', paraphrased: 'In which city is E hosted?',
    updated: ['We moved E from W to V last night.', 'E is no longer in W, it went over to V.'], askedNow: 'Where do we run E at present?',
    denied: 'We looked at V for E and will not go there.', askedDenied: 'Which location did we reject for E?',
    inquiry: 'Does anybody know where the backups of E are kept?', answer: 'In V, on the second shelf.',
  },
  {
    entities: services, values: people,
    stated: ['V is in charge of E.', 'Please send everything about E to V.', 'V takes care of E from here on.'],
    asked: 'Who is in charge of E?', paraphrased: 'Whom do I contact when E has a problem?',
    updated: ['V takes over E from W.', 'W handed E to V.'], askedNow: 'Who is in charge of E these days?',
    denied: 'V does not want to be responsible for E.', askedDenied: 'Who declined to look after E?',
    inquiry: 'Who wrote the first version of E?', answer: 'That was V, years before I came.',
  },
  {
    entities: services, values: ['12,000', '4,500', '30,000', '800', '61,000', '9,300', '17,250', '2,100'],
    stated: ['They approved V euros for E.', 'The board gave us V euros to spend on E.'],
    asked: 'How many euros were approved for E?', paraphrased: 'What is the budget of E?',
    updated: ['The money for E was cut from W to V euros.', 'E gets V euros instead of W.'], askedNow: 'How many euros does E get now?',
    inquiry: 'What does a month of E cost us?', answer: 'About V euros, with support.',
  },
  {
    entities: services, values: ['PostgreSQL', 'Redis', 'MongoDB', 'SQLite', 'Cassandra', 'MariaDB', 'DynamoDB'],
    stated: ['E stores its rows in V.', 'Behind E there is a V, two nodes.'],
    asked: 'Where does E store its rows?', paraphrased: 'Which database does E use?',
    updated: ['E was migrated from W to V.', 'We replaced W with V under E.'], askedNow: 'Which database does E have after the migration?',
    denied: 'We decided against V for E.', askedDenied: 'What did we decide not to use for E?',
  },
  {
    entities: services, values: ['the certificate had expired', 'a disk was full', 'the queue ran over', 'a cable was cut', 'a test key was deployed', 'the clock was wrong'],
    stated: ['E stood still for an hour because V.', 'It turned out that E broke because V.'],
    asked: 'Why did E break?', paraphrased: 'What was the reason for the outage of E?',
    inquiry: 'Why is E so slow on Mondays?', answer: 'Because V again, I fixed it.',
  },
  {
    entities: people, values: ['peanuts', 'shellfish', 'gluten', 'milk', 'eggs', 'strawberries', 'celery'],
    stated: ['E can not eat V.', 'When you order for E: nothing with V, it makes them ill.'],
    asked: 'What can E not eat?', paraphrased: 'Which food is E allergic to?',
    inquiry: 'What does E have for lunch?', answer: 'Something without V, always.',
  },
  {
    entities: people, values: ['cello', 'trumpet', 'accordion', 'drums', 'bassoon', 'harp', 'banjo'],
    stated: ['E plays the V in a band.', 'I heard E practise the V on Sunday.'],
    asked: 'What does E play in a band?', paraphrased: 'Which instrument is E learning?',
    updated: ['E gave up the W and plays the V now.', 'E sold the W and bought a V.'], askedNow: 'What does E play nowadays?',
  },
  {
    entities: people, values: places,
    stated: ['E grew up in V.', "E's parents still have the house in V where E was a child."],
    asked: 'Where did E grow up?', paraphrased: 'What is the hometown of E?',
    updated: ['E left W and lives in V.', 'E moved from W to V in spring.'], askedNow: 'Where does E live today?',
    denied: 'E turned down the job in V.', askedDenied: 'Which offer did E not accept?',
    inquiry: 'Where does E spend the holidays?', answer: 'In V, as every year.',
  },
  {
    entities: ['I', 'my sister', 'my neighbor', 'my brother-in-law', 'our landlord'], values: ['a greyhound', 'two parrots', 'a tortoise', 'a rabbit', 'an old pony', 'three hens'],
    stated: ['E took in V from the shelter.', 'Since Saturday E and V share the flat.'],
    asked: 'What did E take in from the shelter?', paraphrased: 'Which pet does E have?',
  },
  {
    entities: ['I', 'my sister', 'my neighbor', 'my brother-in-law', 'our landlord'], values: ['a broken wrist', 'a cracked rib', 'a bad tooth', 'a sprained ankle', 'a torn muscle'],
    stated: ['E came home with V.', 'Six weeks of rest, says the doctor: E got V on the stairs.'],
    asked: 'What did E come home with?', paraphrased: 'Which injury did E suffer?',
  },
]

const events: ReadonlyArray<readonly [stated: string, asked: string]> = [
  ['E was down for two hours WHEN.', 'Which service was down on DATE?'],
  ['We released a new version of E WHEN.', 'What did we release on DATE?'],
  ['The auditors looked at E WHEN.', 'What did the auditors look at on DATE?'],
  ['E lost a day of data WHEN.', 'What lost data on DATE?'],
]
const several: ReadonlyArray<readonly [stated: readonly string[], asked: string]> = [
  [['P will give a talk at the fair in L.', 'P has a slot at the fair in L, twenty minutes.', 'Good news: P speaks at the fair in L.'], 'Who gives a talk at the fair in L?'],
  [['P was at the customer in L and came back tired.', 'P visited the customer in L with me.', 'The customer in L was glad that P came.'], 'Who has visited the customer in L?'],
  [['P signed up for the course in L.', 'P also takes the course in L.', 'The course in L has one seat less: P is in.'], 'Which people take the course in L?'],
]

const talk = `Thanks, I will look at it tomorrow.|The build of E is green again.|I rebased the branch of E.|Could someone review the change to E?
P is out today.|P and I talked about E over coffee.|Let us discuss E on Monday.|There is a typo on E, second line.|I like the new colors of E.
Who has time to look at E this week?|P asked me about E again.|Nothing new from my side.|The ticket about E can be closed.|See you at lunch!
I will be late, the train stands still.|The people in L want another call.|Is there a recording of the call with L?|P sent the minutes around.
The weather in L was awful.|Same here.|Good idea.|I do not agree, but go ahead.|We should write that down somewhere.|P found the notes about E.
The tests of E take ten minutes.|Can you tell P that E is ready?|How was the weekend, P?|The coffee machine is broken again.|E needs a better name.
I merged it.|The slides for L are in the folder.|P will join from L.|Remind me to update E.|The numbers of E look fine.|Let me check and come back to you.`.split(/[|\n]/)

/** Long answers of an assistant, with the words of the topic and no fact about it. */
const replies = [
  'Here is what I would consider about T. First, write down who works with T and what they expect from it. Second, look at how T did in the last months and keep your notes for a while. Third, tell the people around T early, so that nobody is surprised. If you like, I can draft a plan for T with a list of steps, names and dates.',
  'Thanks for telling me about T! There are several ways to go on. You could ask around for experiences with T, compare two or three alternatives, and decide at the end of the week. Many teams underestimate how much time T takes. Shall I collect some questions that you could ask about T in the next meeting?',
  'Good to know. In general, T is easier to handle when one person has an eye on it, when changes are small, and when somebody reads the log every morning. Let me also mention that money, places and owners change more often than one thinks, so it helps to check the facts about T from time to time.',
]

/** Mailboxes of so many threads each; the same for a seed. */
export function madeMailboxes(count = 3, threads = 30, seed = 7): Stored[] {
  return Array.from({ length: count }, (_, number) => new Mailbox(`made-${number + 1}`, threads, seed + number).stored())
}

interface Planted {
  turns: Array<{ text: string; evidence?: string }>
  /** Its share of the time that the mailbox spans; later facts of an entity have later ones. */
  when: number
}

class Mailbox {
  readonly #id: string
  readonly #threads: number
  readonly #planted: Planted[] = []
  readonly #questions: Array<{ question: string; category: string; facts: string[]; date?: { fact: string; before: number } }> = []
  #state: number
  #facts = 0

  constructor(id: string, threads: number, seed: number) {
    this.#id = id
    this.#threads = threads
    this.#state = seed
  }

  stored(): Stored {
    for (const kind of kinds) for (const entity of this.#some(kind.entities, 5)) this.#plant(kind, entity)
    for (const [stated, asked] of events) for (let n = 0; n < 5; n += 1) this.#plantEvent(stated, asked)
    for (let n = 0; n < 6; n += 1) this.#plantDeadline()
    for (const [stated, asked] of several) for (const place of this.#some(places, 3)) this.#plantSeveral(stated, asked, place)
    return this.#written()
  }

  #plant(kind: Kind, entity: string): void {
    const [first = '', second = '', third = '', fourth = ''] = this.#some(kind.values, 4)
    const fill = (text: string, value: string, former = '') => text.replaceAll(/\b[EVW]\b/g, (letter) => (letter === 'E' ? entity : letter === 'V' ? value : former))
    const begin = this.#chance() * 0.4
    const stated = this.#fact([{ text: sentence(fill(this.#one(kind.stated), first)) }], begin)
    const update = kind.updated && kind.askedNow && this.#chance() < 0.5 ? { ways: kind.updated, asked: kind.askedNow } : undefined
    if (update) {
      const fact = this.#fact([{ text: sentence(fill(this.#one(update.ways), second, first)) }], 0.5 + this.#chance() * 0.5)
      this.#ask(sentence(fill(update.asked, '')), 'updated', [fact])
    } else {
      this.#ask(sentence(grammar(fill(kind.asked, ''))), 'same words', [stated])
      this.#ask(sentence(grammar(fill(kind.paraphrased, ''))), 'paraphrased', [stated])
    }
    if (kind.denied && kind.askedDenied) {
      const fact = this.#fact([{ text: sentence(fill(kind.denied, third)) }], this.#chance())
      this.#ask(sentence(fill(kind.askedDenied, '')), 'denied', [fact])
    }
    if (kind.inquiry && kind.answer) {
      const fact = this.#fact([{ text: sentence(fill(kind.inquiry, '')) }, { text: sentence(fill(kind.answer, fourth)) }], this.#chance())
      this.#ask(sentence(fill(kind.inquiry, '')).replace(/^Does anybody know where the backups of (.*) are kept\?$/, 'Where are the backups of $1?'), 'answered', [fact])
    }
  }

  #plantEvent(stated: string, asked: string): void {
    const [words, before] = this.#one([['yesterday', 1], ['two days ago', 2], ['last week', 7], ['on WEEKDAY', 3], ['this morning', 0], ['three weeks ago', 21]] as const)
    const fact = this.#fact([{ text: sentence(stated.replace('WHEN', words).replaceAll(/\bE\b/g, this.#one(services))) }], this.#chance())
    this.#questions.push({ question: asked, category: 'dated', facts: [fact], date: { fact, before } })
  }

  /** A date that a message mentions, months before or after it was written. */
  #plantDeadline(): void {
    const date = `${1 + Math.floor(this.#chance() * 28)} ${this.#one(months)}`
    const fact = this.#fact([{ text: sentence(`${this.#one(services)} has to be ready by ${date}.`) }], this.#chance())
    this.#ask(`What has to be ready by ${date}?`, 'date mentioned', [fact])
  }

  #plantSeveral(stated: readonly string[], asked: string, place: string): void {
    const facts = this.#some(people, 3).map((person, at) => this.#fact([{ text: sentence((stated[at] ?? '').replaceAll(/\bP\b/g, person).replaceAll(/\bL\b/g, place)) }], this.#chance()))
    this.#ask(asked.replaceAll(/\bL\b/g, place), 'several', facts)
  }

  #ask(question: string, category: string, facts: string[]): void {
    this.#questions.push({ question, category, facts })
  }

  /** The last of the turns has the fact. */
  #fact(turns: Array<{ text: string }>, when: number): string {
    const name = `fact${(this.#facts += 1)}`
    this.#planted.push({ when, turns: turns.map((turn, at) => (at === turns.length - 1 ? { ...turn, evidence: name } : turn)) })
    return name
  }

  #written(): Stored {
    const start = Date.UTC(2031, 1, 3, 8)
    const span = 300 * day
    const planted = this.#planted.toSorted((a, b) => a.when - b.when)
    const perThread = Math.ceil(planted.length / this.#threads)
    const numbers = new Map<string, string>()
    const times = new Map<string, number>()
    const sessions = Array.from({ length: this.#threads }, (_, session) => {
      const at = start + Math.floor((span * session) / this.#threads)
      const turns: StoredTurn[] = []
      const add = (text: string, evidence?: string) => {
        const id = `M${session + 1}:${turns.length + 1}`
        const time = at + turns.length * 1_500_000
        if (evidence) numbers.set(evidence, id), times.set(evidence, time)
        turns.push({ id, at: time, text: evidence ? text.replace('WEEKDAY', days[new Date(time - 3 * day).getUTCDay()] ?? '') : text })
      }
      for (const { turns: of } of planted.slice(session * perThread, (session + 1) * perThread)) {
        for (let n = Math.floor(this.#chance() * 4); n > 0; n -= 1) add(this.#talk())
        for (const { text, evidence } of of) add(evidence && of.length === 1 && this.#chance() < 0.4 ? this.#mail(text) : text, evidence)
        const topic = [...services, ...people].find((one) => of.some(({ text }) => text.includes(one.replace('the ', ''))))
        if (topic && this.#chance() < 0.4) add(this.#one(replies).replaceAll(/\bT\b/g, topic))
      }
      add(this.#talk())
      return { at, turns }
    })
    return {
      id: this.#id,
      sessions,
      qa: this.#questions.map(({ question, category, facts, date }) => ({
        question: date ? question.replace('DATE', dateText((times.get(date.fact) ?? 0) - date.before * day, this.#chance())) : question,
        category,
        evidence: facts.flatMap((fact) => numbers.get(fact) ?? []),
      })),
    }
  }

  #talk(): string {
    const text = this.#one(talk).replaceAll(/\bE\b/g, this.#one(services)).replaceAll(/\bP\b/g, this.#one(people)).replaceAll(/\bL\b/g, this.#one(places))
    return sentence(text)
  }

  /** A longer message with the fact in its middle. */
  #mail(fact: string): string {
    return ['Hello all,', this.#talk(), this.#talk(), fact, this.#talk(), this.#talk(), 'Best wishes'].join(' ')
  }

  #chance(): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647
    return this.#state / 2_147_483_647
  }

  #one<Item>(list: readonly Item[]): Item {
    return list[Math.floor(this.#chance() * list.length)] as Item
  }

  #some<Item>(list: readonly Item[], count: number): Item[] {
    const left = [...list]
    return Array.from({ length: Math.min(count, left.length) }, () => left.splice(Math.floor(this.#chance() * left.length), 1)[0] as Item)
  }
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

/** "What did I come", "Which pet do I have". */
function grammar(text: string): string {
  return text.replace('does I ', 'do I ').replace('is I ', 'am I ')
}

function dateText(time: number, chance: number): string {
  const date = new Date(time)
  const [month, number] = [months[date.getUTCMonth()] ?? '', date.getUTCDate()]
  if (chance < 0.3) return `${number} ${month}`
  return chance < 0.6 ? `${month} ${number}, ${date.getUTCFullYear()}` : `${date.getUTCFullYear()}-${String(date.getUTCMonth() + 1).padStart(2, '0')}-${String(number).padStart(2, '0')}`
}
