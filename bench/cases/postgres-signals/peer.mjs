import { report } from '../../harness/side.mjs'
import { peerOnPostgres } from '../../postgres/peer.mjs'
import { model, signals } from '../persisted-signals/signals.mjs'

report(await signals(await peerOnPostgres(model), (receipt) => receipt.persisted))
