import { report } from '../../harness/side.mjs'
import { peerAgent } from '../../threads/peer.mjs'
import { model, turns } from './turns.mjs'

report(await turns(peerAgent(model)))
