import { report } from '../../harness/side.mjs'
import { peerServer } from '../../http/peer-server.mjs'
import { model, sends } from './sends.mjs'

const count = (threads) => `SELECT count(*) AS rows FROM mastra_messages WHERE thread_id LIKE '${threads}%'`
report(await sends({ ...(await peerServer(model)), count }))
