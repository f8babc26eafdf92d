import { checkMusts } from './checks/musts.ts'
import { report } from './checks/report.ts'

report('musts', checkMusts(process.argv[2] ?? process.cwd()))
