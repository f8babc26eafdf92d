import { report } from '../../harness/side.mjs'
import { peerOnPostgres } from '../../postgres/peer.mjs'
import { model, turns } from './turns.mjs'

report(await turns(await peerOnPostgres(model)))
