import type { Connection } from './connection.ts'

interface Shared {
  users: number
  readonly opening: Promise<Connection>
}

/** The open connections of this process, by file: each file has one, however many stores name it. */
const shared = new Map<string, Shared>()

/** Gives the connection to `path`, and a way to give it back. The last one to do so closes it. */
export async function share(path: string, open: () => Promise<Connection>): Promise<{ connection: Connection; release(): Promise<void> }> {
  let entry = shared.get(path)
  if (!entry) {
    entry = { users: 0, opening: open() }
    shared.set(path, entry)
  }
  const mine = entry
  mine.users += 1
  const leave = (): boolean => {
    mine.users -= 1
    if (mine.users > 0) return false
    if (shared.get(path) === mine) shared.delete(path)
    return true
  }
  try {
    const connection = await mine.opening
    return {
      connection,
      release: async () => {
        if (leave()) await connection.close()
      },
    }
  } catch (error) {
    leave()
    throw error
  }
}
