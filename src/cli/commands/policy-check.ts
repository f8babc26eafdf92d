import { command } from '../shell/command.ts'

export const policyCheck = command({
  name: 'policy check',
  about: 'checks files of policies against the schema of Heed',
  examples: ['heed policy check policies.cedar', 'heed policy check --json policies/*.cedar'],
  arguments: [{ name: 'FILE', about: 'a file with policies', repeated: true }],
  page: 'docs/policies.md',
  run: async ({ arguments: files, output }) => (await import('../policy-check.ts')).checkPolicyFiles(files, output),
})
