import { randomUUID } from 'node:crypto'
import { systemClock } from '../clock.ts'
import { consoleLogger } from '../logger.ts'
import type { RunEnvironment } from '../thread/runnable.ts'
import type { AgentConfig } from './config.ts'

/** What surrounds the runs of an agent: its Heed's clock and logger, or the system's. */
export function environmentOf(config: Pick<AgentConfig, 'heed'>): RunEnvironment {
  return {
    clock: config.heed?.clock ?? systemClock,
    logger: config.heed?.logger ?? consoleLogger,
    newId: randomUUID,
  }
}
