export const postgresNotifications = {
  name: 'postgres-notifications',
  title: 'Notifications into the inbox, and out of it, on PostgreSQL',
  about: 'As `notifications`, on a PostgreSQL server of its own for each side, with 8 connections and every commit flushed.',
  sides: ['heed', 'peer'],
  rounds: { full: 5, quick: 1 },
  input: { full: { cold: 100, warmup: 200, atOnce: 2_000, width: 50, inTurn: 300, due: 400 }, quick: { cold: 5, warmup: 5, atOnce: 50, width: 10, inTurn: 10, due: 20 } },
  comparisons: [
    { measure: 'ingress, 50 at once/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'ingress, in turn/s', of: 'heed', to: 'peer' },
    { measure: 'ingress cpu', of: 'heed', to: 'peer' },
    { measure: 'dispatch/s', of: 'heed', to: 'peer', atLeast: 10 },
    { measure: 'dispatch cpu', of: 'heed', to: 'peer' },
  ],
}
