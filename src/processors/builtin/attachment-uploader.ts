import { checkNames } from '../../base/arguments.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import { withoutPartAttachments } from '../../message/attachments.ts'
import type { Message } from '../../message/message.ts'
import { FailedInput } from '../failed-input.ts'
import { filesOf, withoutFiles, type InlineFile } from '../inline-files.ts'
import type { Processor, ProcessInputArgs } from '../processor.ts'
import { checkCount, checkFunction } from './option-checks.ts'

/** A file that a message contains inline. */
export interface UploadedAttachment {
  data: Uint8Array
  contentType: string
  name?: string
}

/** The options of `AttachmentUploader`. */
export interface AttachmentUploaderOptions {
  /** Stores a file where models can read it, and returns its URL. The signal aborts with the run, and after `timeoutMs`. */
  upload(attachment: UploadedAttachment, options: { abortSignal: AbortSignal }): Promise<string>
  /** Smaller files stay inline. Defaults to 0. */
  minBytes?: number
  /** The number of concurrent uploads. Defaults to 4. */
  concurrency?: number
  /** After this time an upload is aborted and has failed. Defaults to a minute. */
  timeoutMs?: number
}

/**
 * Uploads the inline files of input, both file parts and `experimental_attachments`, and replaces their bytes by URLs: history and
 * prompts then contain no base64. A failed upload fails the run; the error names the file, and a note replaces each file that was not
 * uploaded, so that its bytes don't stay in history. Uploaded files are not removed when another processor rejects the message.
 *
 * @example new AttachmentUploader({ upload: async ({ data, contentType }) => (await bucket.put(data, { contentType })).url })
 */
export class AttachmentUploader implements Processor<'attachment-uploader'> {
  readonly id = 'attachment-uploader'
  readonly #options: Required<AttachmentUploaderOptions>

  constructor(options: AttachmentUploaderOptions) {
    checkNames('AttachmentUploader', options, ['upload', 'minBytes', 'concurrency', 'timeoutMs'])
    const { upload, minBytes = 0, concurrency = 4, timeoutMs = 60_000 } = options
    checkFunction('AttachmentUploader', 'upload', upload)
    checkCount('AttachmentUploader', 'minBytes', minBytes, 0)
    checkCount('AttachmentUploader', 'concurrency', concurrency, 1)
    checkCount('AttachmentUploader', 'timeoutMs', timeoutMs, 1)
    this.#options = { upload, minBytes, concurrency, timeoutMs }
  }

  async processInput({ messages, abortSignal }: ProcessInputArgs): Promise<Message[] | undefined> {
    const files = messages.flatMap(filesOf).filter(({ base64 }) => bytesIn(base64) >= this.#options.minBytes)
    const urls = new Map<object, string>()
    try {
      await this.#uploadAll(files, urls, abortSignal)
    } catch (error) {
      if (!isHeedError(error) || abortSignal.aborted) throw error
      const left = new Set<object>(files.flatMap(({ owner }) => (urls.has(owner) ? [] : owner)))
      throw new FailedInput(error, messages.map((message) => {
        return withoutFiles(withURLs({ ...message, content: withoutPartAttachments(message.content) }, urls), left, 'could not be uploaded')
      }))
    }
    return urls.size === 0 ? undefined : messages.map((message) => withURLs(message, urls))
  }

  /** Adds the URL of each uploaded part or attachment. After a failure, no further upload starts. */
  async #uploadAll(large: readonly InlineFile[], urls: Map<object, string>, abortSignal: AbortSignal): Promise<void> {
    const { concurrency } = this.#options
    let next = 0
    let failed = false
    const worker = async () => {
      for (let file = large[next++]; file && !failed; file = large[next++]) {
        try {
          urls.set(file.owner, await this.#upload(file, abortSignal))
        } catch (error) {
          failed = true
          throw error
        }
      }
    }
    const results = await Promise.allSettled(Array.from({ length: Math.min(concurrency, large.length) }, worker))
    const failure = results.find((result) => result.status === 'rejected')
    if (failure) throw failure.reason
  }

  async #upload({ base64, contentType, name }: InlineFile, abortSignal: AbortSignal): Promise<string> {
    abortSignal.throwIfAborted()
    const data = new Uint8Array(Buffer.from(base64, 'base64'))
    const file = name === undefined ? `A file of type ${contentType}` : `The file ${JSON.stringify(name)}`
    const details = { name, contentType }
    const { upload, timeoutMs } = this.#options
    const limit = new TimeLimit(timeoutMs, abortSignal)
    let url: unknown
    try {
      url = await limit.race(upload({ data, contentType, ...(name === undefined ? {} : { name }) }, { abortSignal: limit.signal }))
    } catch (cause) {
      if (abortSignal.aborted) throw abortSignal.reason
      if (limit.isOver) {
        const why = `${file} could not be uploaded within ${timeoutMs} ms. Check the storage, or raise timeoutMs.`
        throw new HeedError('processor_failed', why, { cause, details: { ...details, timeoutMs } })
      }
      throw new HeedError('processor_failed', `${file} could not be uploaded: ${describe(cause)}`, { cause, details })
    }
    if (typeof url === 'string' && URL.canParse(url) && !/^data:/i.test(url)) return url
    throw new HeedError('processor_failed', `${file} was uploaded, but \`upload\` returned no URL for it.`, { details })
  }
}

/** Longer timers fire at once. */
const maxTimeoutMs = 2 ** 31 - 1

/** Ends the wait for an upload when its time is over or its run is aborted, also if the upload ignores its signal. */
class TimeLimit {
  isOver = false
  readonly #stop = new AbortController()
  readonly #run: AbortSignal
  readonly #timer: ReturnType<typeof setTimeout>
  readonly #onAbort = () => this.#stop.abort(this.#run.reason)

  constructor(ms: number, run: AbortSignal) {
    this.#run = run
    this.#timer = setTimeout(() => {
      this.isOver = true
      this.#stop.abort(new Error('The time of the upload is over.'))
    }, Math.min(ms, maxTimeoutMs))
    run.addEventListener('abort', this.#onAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  async race<T>(work: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>()
    this.signal.addEventListener('abort', () => reject(this.signal.reason), { once: true })
    try {
      return await Promise.race([work, promise])
    } finally {
      clearTimeout(this.#timer)
      this.#run.removeEventListener('abort', this.#onAbort)
    }
  }
}

function withURLs(message: Message, urls: ReadonlyMap<object, string>): Message {
  const { parts, experimental_attachments: attachments } = message.content
  if (![...parts, ...(attachments ?? [])].some((file) => urls.has(file))) return message
  const uploaded = attachments?.map((file) => (urls.has(file) ? { ...file, url: urls.get(file) ?? file.url } : file))
  const content = {
    ...message.content,
    parts: parts.map((part) => (part.type === 'file' && urls.has(part) ? { ...part, data: urls.get(part) ?? part.data } : part)),
    ...(uploaded && { experimental_attachments: uploaded }),
  }
  return { ...message, content }
}

function bytesIn(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return Math.floor(((base64.length - padding) * 3) / 4)
}
