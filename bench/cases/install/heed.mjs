import { input, report } from '../../harness/side.mjs'
import { installed } from './installed.mjs'

report(installed(input.heedProject))
