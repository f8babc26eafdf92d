import { systemClock, type Clock } from './clock.ts'
import { consoleLogger, type Logger } from './logger.ts'

export class Heed {
  readonly clock: Clock
  readonly logger: Logger

  constructor(config: { clock?: Clock; logger?: Logger } = {}) {
    this.clock = config.clock ?? systemClock
    this.logger = config.logger ?? consoleLogger
  }
}
