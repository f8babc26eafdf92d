export const importing = {
  name: 'import',
  title: 'Importing',
  about: "Importing an agent and a store: `heed` and `heed/libsql`, beside the peer's agent, memory and libSQL store. Milliseconds; `rssMB` is what the process holds afterwards.",
  sides: ['heed', 'peer'],
  rounds: { full: 9, quick: 3 },
  comparisons: [
    { measure: 'cpu', of: 'heed', to: 'peer', atMost: 1 / 8 },
    { measure: 'wall', of: 'heed', to: 'peer' },
    { measure: 'rssMB', of: 'heed', to: 'peer' },
  ],
}
