import { report } from '../../harness/side.mjs'
import { heedServer } from '../../http/heed-server.mjs'
import { model, sends } from './sends.mjs'

const count = (threads) => `SELECT count(*) AS rows FROM heed_threads JOIN heed_messages ON thread = heed_threads.key WHERE heed_threads.id LIKE '${threads}%' AND role IN ('signal', 'assistant')`
report(await sends({ ...(await heedServer(model)), count }))
