import { report } from '../../harness/side.mjs'
import { heedOnPostgres } from '../../postgres/heed.mjs'
import { model, signals } from '../persisted-signals/signals.mjs'

report(await signals(await heedOnPostgres(model), (receipt) => receipt.stored))
