import { report } from './checks/report.ts'
import { checkWords } from './checks/words.ts'

report('words', checkWords(process.argv[2] ?? process.cwd()))
