export const importing = {
  name: 'import',
  title: 'Importing',
  about:
    "Importing `heed`, which loads its store when a thread is first used, and `heed/libsql` with it; beside the peer's agent, memory and libSQL store. Milliseconds; `rssMB` is what the process holds afterwards.",
  sides: ['heed', 'peer'],
  rounds: { full: 9, quick: 3 },
  comparisons: [
    { measure: 'cpu', of: 'heed', to: 'peer', atMost: 1 / 8 },
    { measure: 'cpu with store', of: 'heed', to: 'peer' },
    { measure: 'wall', of: 'heed', to: 'peer' },
    { measure: 'rssMB', of: 'heed', to: 'peer' },
  ],
}
