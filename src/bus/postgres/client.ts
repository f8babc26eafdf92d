/** As much of a client of `pg` as the bus uses. */
export interface NotifyClient {
  query(text: string, values?: readonly unknown[]): Promise<{ rows: Array<Record<string, unknown>> }>
  on(event: 'notification', listener: (notification: { channel: string; payload?: string }) => void): unknown
  on(event: 'error' | 'end', listener: (error?: unknown) => void): unknown
  end(): Promise<void>
}

/** Opens a connection to the database, straight to the server: a pooler that shares connections delivers no notifications. */
export type Connect = () => Promise<NotifyClient>

/** Closes a connection that does not answer. */
export function fail(client: NotifyClient): void {
  const { connection } = client as { connection?: { stream?: { destroy?(): void } } }
  connection?.stream?.destroy?.()
}
