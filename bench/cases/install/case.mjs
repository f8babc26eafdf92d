export const install = {
  name: 'install',
  title: 'Installed into an empty project',
  about:
    'Packages and megabytes in `node_modules`. The peer: its agent, memory and libSQL store.',
  sides: ['heed', 'peer'],
  rounds: { full: 1, quick: 1 },
  comparisons: [
    { measure: 'packages', of: 'heed', atMost: 15 },
    { measure: 'megabytes', of: 'heed', atMost: 15, unit: ' MB' },
    { measure: 'packages', of: 'heed', to: 'peer' },
    { measure: 'megabytes', of: 'heed', to: 'peer' },
  ],
}
