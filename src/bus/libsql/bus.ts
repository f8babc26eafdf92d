import type { Bus, BusListener, Seat } from '../contract.ts'
import { Exchange } from './exchange.ts'

/** The exchanges of this process, by folder: each has one, however many stores name the same database. */
const exchanges = new Map<string, Exchange>()

/** For processes that share a database file, with nothing between them but the disk: they speak through a folder beside it. */
export class LibSQLBus implements Bus {
  readonly #path: () => Promise<string>

  /** The path of the database, resolved when it is needed. */
  constructor(path: () => Promise<string>) {
    this.#path = path
  }

  async join(member: string, listener: BusListener): Promise<Seat> {
    const folder = `${await this.#path()}-bus`
    let exchange = exchanges.get(folder)
    if (!exchange) exchanges.set(folder, (exchange = new Exchange(folder)))
    const mine = exchange
    await mine.add(member, listener)
    return {
      get company() {
        return mine.company
      },
      get mute() {
        return mine.mute
      },
      met: () => mine.met(member),
      say: (message, to) => mine.say(member, message, to),
      settle: () => mine.settle(),
      listen: () => mine.listen(),
      async leave() {
        if (!mine.remove(member)) return
        if (exchanges.get(folder) === mine) exchanges.delete(folder)
        await mine.close()
      },
    }
  }
}
