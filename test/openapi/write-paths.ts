import { writeFileSync } from 'node:fs'
import { generateTypes } from './document.ts'

/** Writes `paths.ts`, the types of a generated client: run it where a route changes (`npm run openapi`), and commit the difference. */
writeFileSync(new URL('paths.ts', import.meta.url), await generateTypes())
