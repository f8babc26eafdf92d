/** A batch of this many bytes leaves no larger buffer behind. */
const keptBytes = 1 << 20

/**
 * The messages of a batch in the protocol of the server, as one piece of memory: a socket takes one piece at a fraction of the cost of the
 * hundreds that the messages of many statements would be.
 */
export class Messages {
  static #spare: Buffer = Buffer.allocUnsafeSlow(1 << 16)
  #bytes: Buffer
  #at = 0

  constructor() {
    this.#bytes = Messages.#spare
    // One that is made before this one is done has its own.
    Messages.#spare = Buffer.allocUnsafeSlow(0)
  }

  parse(name: string, text: string): void {
    const from = this.#begin('P', name.length + text.length * 3 + 16)
    this.#text(name)
    this.#text(text)
    this.#int16(0)
    this.#end(from)
  }

  /** Asks for the types of the values of a statement, and for its columns. */
  describe(name: string): void {
    const from = this.#begin('D', name.length + 16)
    this.#byte('S')
    this.#text(name)
    this.#end(from)
  }

  close(name: string): void {
    const from = this.#begin('C', name.length + 16)
    this.#byte('S')
    this.#text(name)
    this.#end(from)
  }

  /** All values are texts, as are those of its rows. */
  bind(statement: string, values: ReadonlyArray<string | null>): void {
    const from = this.#begin('B', statement.length + 16)
    this.#text('')
    this.#text(statement)
    this.#int16(0)
    this.#int16(values.length)
    for (const value of values) {
      if (value === null) this.#length(-1)
      else this.#value(value)
    }
    this.#room(2)
    this.#int16(0)
    this.#end(from)
  }

  execute(): void {
    const from = this.#begin('E', 16)
    this.#text('')
    this.#int32(0)
    this.#end(from)
  }

  sync(): void {
    this.#end(this.#begin('S', 0))
  }

  /** All messages. Nothing can be added afterwards. */
  taken(): Buffer {
    const all = Buffer.from(this.#bytes.subarray(0, this.#at))
    if (this.#bytes.length > Messages.#spare.length && this.#bytes.length <= keptBytes) Messages.#spare = this.#bytes
    return all
  }

  /** Returns where the length of the message is. `most`: what the message has room for at once. */
  #begin(type: string, most: number): number {
    this.#room(most + 5)
    this.#byte(type)
    this.#at += 4
    return this.#at - 4
  }

  #end(from: number): void {
    this.#bytes.writeInt32BE(this.#at - from, from)
  }

  #value(value: string): void {
    this.#room(value.length * 3 + 4)
    const from = this.#at
    this.#at += 4
    const written = this.#bytes.write(value, this.#at)
    this.#bytes.writeInt32BE(written, from)
    this.#at += written
  }

  #length(length: number): void {
    this.#room(4)
    this.#int32(length)
  }

  #text(value: string): void {
    this.#at += this.#bytes.write(value, this.#at)
    this.#bytes[this.#at++] = 0
  }

  #byte(value: string): void {
    this.#bytes[this.#at++] = value.charCodeAt(0)
  }

  #int16(value: number): void {
    // The number of values: 65,535 at most.
    this.#at = this.#bytes.writeUInt16BE(value, this.#at)
  }

  #int32(value: number): void {
    this.#at = this.#bytes.writeInt32BE(value, this.#at)
  }

  #room(more: number): void {
    if (this.#at + more <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(1 << 16, (this.#at + more) * 2))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
