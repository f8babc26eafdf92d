import { report } from '../../harness/side.mjs'
import { heedOnPostgres } from '../../postgres/heed.mjs'
import { model, turns } from './turns.mjs'

report(await turns(await heedOnPostgres(model)))
