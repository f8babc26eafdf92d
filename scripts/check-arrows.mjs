import { checkArrows } from './checks/arrows.ts'
import { report } from './checks/report.ts'

report('arrows', checkArrows(process.argv[2] ?? process.cwd()))
