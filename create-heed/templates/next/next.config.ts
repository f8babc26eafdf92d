import type { NextConfig } from 'next'

const config: NextConfig = {
  // Heed opens databases and worker threads: Node loads it as it is, instead of the bundler.
  serverExternalPackages: ['heed'],
}

export default config
