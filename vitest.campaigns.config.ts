import { defineConfig } from 'vitest/config'
import base from './vitest.config.ts'

/** Tests that play and hear sound: a browser and its devices have to keep up with the time that the sound takes. */
const sound = ['test/voice/page-call.campaign.ts', 'test/voice/real-sound.campaign.ts']

/** CI runs those of Studio on the installed package: `npm run test:studio`. */
const elsewhere = process.env.CI ? [...sound, 'test/studio/*.campaign.ts'] : sound

/**
 * Short campaigns: several processes or a browser under kills, stops and faults, random input, and builds that are broken on purpose.
 * `npm test` leaves them out. Those with sound run at the end, one after the other.
 */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    // Most of the time is waiting for leases and for processes that start.
    maxWorkers: 5,
    maxConcurrency: 2,
    reporters: process.env.CI ? ['default', ['json', { outputFile: '.ci/campaigns.json' }]] : ['default'],
    projects: [
      {
        extends: true,
        test: { name: 'campaigns', isolate: false, include: ['test/**/*.campaign.ts'], exclude: elsewhere, sequence: { groupOrder: 0 } },
      },
      { extends: true, test: { name: 'sound', isolate: false, include: sound, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
})
