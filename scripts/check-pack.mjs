import { fileURLToPath } from 'node:url'
import { checkPack } from './checks/pack.ts'

const tsc = fileURLToPath(new URL('../node_modules/.bin/tsc', import.meta.url))
checkPack(process.argv[2] ?? process.cwd(), { tsc, limits: { packages: 15, megabytes: 15 } })
