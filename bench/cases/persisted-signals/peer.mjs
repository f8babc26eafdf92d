import { report } from '../../harness/side.mjs'
import { peerAgent } from '../../threads/peer.mjs'
import { model, signals } from './signals.mjs'

report(await signals(peerAgent(model), (receipt) => receipt.persisted))
