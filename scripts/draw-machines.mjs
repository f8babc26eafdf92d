import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { machinesPage, withDrawings } from './checks/machines.ts'

const path = join(process.argv[2] ?? process.cwd(), machinesPage)
writeFileSync(path, withDrawings(readFileSync(path, 'utf8')))
