import { describe, expect, it } from 'vitest'
import * as processors from '../index.ts'

const { AttachmentUploader, browserLane, fileReminder, MessageHistory, ModerationProcessor, PIIDetector, PromptInjectionDetector, RegexFilter, SemanticRecall, SystemPromptScrubber, TokenLimiter, ToolCallFilter, UnicodeNormalizer, WorkingMemory } = processors
const judge = { generate: async () => ({ object: {} }) } as never

const makers: Record<string, (more: object) => unknown> = {
  AttachmentUploader: (more) => new AttachmentUploader({ upload: async () => 'https://files/1', ...more }),
  browserLane: (more) => browserLane({ read: () => undefined, ...more }),
  fileReminder: (more) => fileReminder({ load: () => undefined, ...more }),
  MessageHistory: (more) => new MessageHistory({ lastMessages: 3, ...more }),
  ModerationProcessor: (more) => new ModerationProcessor({ judge, ...more }),
  PIIDetector: (more) => new PIIDetector({ judge, ...more }),
  PromptInjectionDetector: (more) => new PromptInjectionDetector({ judge, ...more }),
  RegexFilter: (more) => new RegexFilter({ presets: ['secrets'], ...more }),
  SemanticRecall: (more) => new SemanticRecall({ topK: 3, ...more }),
  SystemPromptScrubber: (more) => new SystemPromptScrubber({ judge, ...more }),
  TokenLimiter: (more) => new TokenLimiter({ limit: 100, ...more }),
  ToolCallFilter: (more) => new ToolCallFilter({ keepLast: 1, ...more }),
  UnicodeNormalizer: (more) => new UnicodeNormalizer({ form: 'NFC', ...more }),
  WorkingMemory: (more) => new WorkingMemory({ enabled: true, ...more }),
}

describe('the options of a processor', () => {
  it.each(Object.entries(makers))('[G1.13] %s: an unknown one is rejected by name', (_, make) => {
    expect(() => make({})).not.toThrow()
    expect(() => make({ limitt: 7 })).toThrow(expect.objectContaining({ code: 'unsupported_option', message: expect.stringContaining("'limitt'"), details: expect.objectContaining({ option: expect.stringContaining('limitt') }) }))
  })

  it('[G1.13] are checked by every processor', () => {
    const made = Object.entries(processors).filter(([name, value]) => typeof value === 'function' && /^[A-Z]|Lane$|Reminder$/.test(name) && !/Error$|^TripWire$/.test(name)).map(([name]) => name)
    expect(made.filter((name) => !(name in makers))).toEqual([])
  })
})
