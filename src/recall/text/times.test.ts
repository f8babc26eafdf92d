import { describe, expect, it } from 'vitest'
import { nearness, readTimes } from './times.ts'

const now = Date.parse('2031-06-18T15:00:00Z') // a Wednesday
const read = (text: string) =>
  readTimes(text, now, () => [2031, 2030]).map(({ spans }) => spans.map(({ from, to }) => `${iso(from)} ${iso(to)}`))
const iso = (time: number) => new Date(time).toISOString().slice(0, 10)

describe('[K1.25] the times that a question names', () => {
  it('are dates, in the words of English and in digits', () => {
    for (const text of ['What broke on May 3, 2030?', 'What broke on 3 May 2030?', 'What broke on the 3rd of May, 2030?', 'What broke on 2030-05-03?', 'Fixed on May 3rd, 2030.'])
      expect(read(text)).toEqual([['2030-05-03 2030-05-04']])
    expect(read('Where was I in August 2030?')).toEqual([['2030-08-01 2030-09-01']])
    expect(read('Where was I in 2030?')).toEqual([['2030-01-01 2031-01-01']])
    expect(read('Was it between March 2 2031 and April 5 2031?')).toEqual([['2031-03-02 2031-03-03'], ['2031-04-05 2031-04-06']])
  })

  it('mean each year of the messages where no year is named', () => {
    expect(read('What broke on May 3?')).toEqual([['2031-05-03 2031-05-04', '2030-05-03 2030-05-04']])
    expect(read('Where did we go last May?')).toEqual([['2031-05-01 2031-06-01', '2030-05-01 2030-06-01']])
  })

  it('are relative to now in questions alone', () => {
    expect(read('What did I say yesterday?')).toEqual([['2031-06-17 2031-06-18']])
    expect(read('What did I eat three days ago?')).toEqual([['2031-06-15 2031-06-16']])
    expect(read('What did we decide last week?')).toEqual([['2031-06-09 2031-06-16']])
    expect(read('What did we decide last month?')).toEqual([['2031-05-01 2031-06-01']])
    expect(read('Where did I park on Monday?')).toEqual([['2031-06-16 2031-06-17']])
    expect(read('Yesterday my bike was stolen.')).toEqual([])
    expect(read('I went to the lake last week. Who came with me?')).toEqual([])
  })

  it('[K1.22] are the same for all searches of a day', () => {
    for (const time of ['two weeks ago', 'five months ago', 'a year ago', 'three days ago', 'yesterday', 'last week', 'last month', 'last year', 'on Monday']) {
      const at = (clock: string) => readTimes(`Where were we ${time}?`, Date.parse(`2031-06-18T${clock}Z`), () => [2031])
      expect(at('00:00:00')).toHaveLength(1)
      expect(at('23:59:59')).toEqual(at('00:00:00'))
    }
    expect(read('Where were we two weeks ago?')).toEqual([['2031-06-01 2031-06-08']])
  })

  it('are no words that only look like a time', () => {
    for (const text of ['May I come in?', 'What may happen?', 'Did the band march on?', 'How many of the 20 came?', 'What did Mark buy?']) expect(read(text)).toEqual([])
  })

  it('are nearer to what was written soon after than to what was written long before or after', () => {
    const spans = [{ from: 0, to: 86_400_000 }]
    const near = [-7, -1, 0.5, 2, 15, 60].map((days) => nearness(days * 86_400_000, spans))
    expect(near).toEqual([0.5, expect.closeTo(0.91, 1), 1, expect.closeTo(0.95, 1), 0.5, expect.closeTo(0.05, 1)])
  })
})
