export const importing = {
  name: 'import',
  title: 'Importing',
  about:
    "Imports `heed`, which loads its store at the first use of a thread, and `heed/libsql`; compared with the peer's agent, " +
    'memory and libSQL store. Milliseconds; `rssMB` is the memory of the process afterwards.',
  sides: ['heed', 'peer'],
  rounds: { full: 9, quick: 3 },
  comparisons: [
    { measure: 'cpu', of: 'heed', to: 'peer', atMost: 1 / 8 },
    { measure: 'cpu with store', of: 'heed', to: 'peer' },
    { measure: 'wall', of: 'heed', to: 'peer' },
    { measure: 'rssMB', of: 'heed', to: 'peer' },
  ],
}
