import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Chance } from '../../src/store/conformance/fixture.ts'
import { connectClient } from '../../src/store/postgres/sessions.ts'
import { startServer, type Server } from '../postgres/server.ts'
import { RedisServer } from '../redis/redis-server.ts'
import type { Query } from './ledger.ts'
import { Network } from './network.ts'
import type { NodePlan } from './node.ts'

interface ClusterPlan {
  /** The bundled program of a node. */
  program: string
  folder: string
  nodes: number
  threads: string[]
  pace: number
  /** Whether Redis is the bus; PostgreSQL itself otherwise. */
  redis: boolean
}

let databases = 0

/** Some nodes, each behind a network of its own, on one database. */
export class Cluster {
  readonly schema = 'chaos'
  readonly server: Server
  readonly redis: RedisServer | undefined
  /** What nodes wrote to standard error, and those that ended by themselves. */
  readonly problems: string[] = []
  sends = 100_000
  readonly #plan: ClusterPlan
  readonly #chance: Chance
  readonly #networks: Network[]
  readonly #redisNetworks: Network[]
  readonly #nodes: ChildProcess[] = []
  readonly #lives: number[]

  static async start(plan: ClusterPlan, chance: Chance): Promise<Cluster> {
    // Not within a folder of this user alone: another one runs the server.
    const data = join(tmpdir(), `heed-chaos-${process.pid}-${databases++}`)
    const server = await startServer(data, { max_connections: '60', superuser_reserved_connections: '5' }, { trusting: true })
    const redis = plan.redis ? await RedisServer.start() : undefined
    const networks = await Promise.all(Array.from({ length: plan.nodes }, () => Network.to(server.port)))
    const redisNetworks = redis ? await Promise.all(networks.map(() => Network.to(redis.port))) : []
    const cluster = new Cluster(plan, chance, server, redis, networks, redisNetworks)
    // Nodes are no superusers: the last connections are left to those.
    await cluster.query(`CREATE ROLE node LOGIN; GRANT CREATE ON DATABASE postgres TO node; GRANT pg_monitor TO node`)
    for (let slot = 0; slot < plan.nodes; slot++) cluster.start(slot)
    return cluster
  }

  private constructor(
    plan: ClusterPlan, chance: Chance, server: Server, redis: RedisServer | undefined, networks: Network[], redisNetworks: Network[],
  ) {
    this.#plan = plan
    this.#chance = chance
    this.server = server
    this.redis = redis
    this.#networks = networks
    this.#redisNetworks = redisNetworks
    this.#lives = networks.map(() => 0)
  }

  networksOf(slot: number): Network[] {
    return [this.#networks[slot], this.#redisNetworks[slot]].filter((network) => network !== undefined)
  }

  get names(): string[] {
    return this.#lives.map((lives, slot) => `${slot}.${lives - 1}`)
  }

  start(slot: number): void {
    const life = this.#lives[slot] ?? 0
    this.#lives[slot] = life + 1
    const { folder, program, threads, pace } = this.#plan
    const redis = this.#redisNetworks[slot]
    const plan: NodePlan = {
      folder, slot, life, threads, pace, sends: this.sends, schema: this.schema, seed: this.#chance.below(2 ** 31), skew: this.#chance.below(60_000) - 30_000,
      database: `postgresql://node@127.0.0.1:${this.#networks[slot]?.port}/postgres`, ...(redis && { redis: `redis://127.0.0.1:${redis.port}` }),
    }
    const node = spawn(process.execPath, ['--no-warnings', program, JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    let said = ''
    node.stderr?.on('data', (text: Buffer) => (said = `${said}${text.toString()}`.slice(-2_000)))
    node.once('close', (code, signal) => {
      const wasEnded = this.#nodes[slot] !== node || signal !== null || code === 0
      if (said !== '' || !wasEnded) this.problems.push(`node ${slot}.${life} ended with ${code ?? signal}: ${said}`)
    })
    this.#nodes[slot] = node
  }

  signal(slot: number, name: NodeJS.Signals): void {
    this.#nodes[slot]?.kill(name)
  }

  tell(slot: number, what: string | object): Promise<boolean> {
    const node = this.#nodes[slot]
    if (!node?.connected) return Promise.resolve(false)
    return new Promise((resolve) => node.send(what as object, (error) => resolve(error === null)))
  }

  /** Resolves when the node says the word, or has ended. */
  async said(slot: number, word: string): Promise<void> {
    const node = this.#nodes[slot]
    if (!node || node.exitCode !== null || node.signalCode !== null) return
    const { promise, resolve } = Promise.withResolvers<void>()
    node.on('message', (message) => message === word && resolve())
    await Promise.race([promise, once(node, 'exit')])
  }

  /** Ends a node, and resolves when it has ended; after 30 s it is killed. */
  async end(slot: number, how: 'SIGKILL' | 'SIGTERM' | 'stop'): Promise<void> {
    const node = this.#nodes[slot]
    if (!node || node.exitCode !== null || node.signalCode !== null) return
    const ended = once(node, 'exit')
    if (how === 'stop') await this.tell(slot, 'stop')
    else node.kill(how)
    const late = setTimeout(() => {
      this.problems.push(`node ${slot}.${(this.#lives[slot] ?? 1) - 1} did not end within 30 s after ${how}`)
      node.kill('SIGKILL')
    }, 30_000)
    await ended
    clearTimeout(late)
  }

  /** Executes statements as a superuser, past all networks. With `within`, in one transaction that stays open until it is done. */
  readonly query = (async (text: string, within?: () => Promise<boolean>) => {
    const client = (await connectClient({ connectionString: this.server.url, application_name: 'chaos' })) as unknown as { query: Query; end(): Promise<void> }
    try {
      if (!within) return await client.query(text)
      await client.query('BEGIN')
      await client.query(text)
      return await within()
    } finally {
      await client.end().catch(() => {})
    }
  }) as Query & ((text: string, within: () => Promise<boolean>) => Promise<boolean>)

  /** Takes all connections that nodes may have, for a while. */
  async occupy(ms: number): Promise<boolean> {
    const config = { connectionString: this.server.url.replace(/\/\/[^@]*@/, '//node@'), application_name: 'chaos' }
    const taken: Array<{ end(): Promise<void> }> = []
    let refused = false
    while (!refused && taken.length < 100) await connectClient(config).then((client) => taken.push(client), () => (refused = true))
    await new Promise((resolve) => setTimeout(resolve, ms))
    await Promise.all(taken.map((client) => client.end().catch(() => {})))
    return refused
  }

  fair(): void {
    for (const network of [...this.#networks, ...this.#redisNetworks]) network.weather = { kind: 'fair' }
  }

  /** Ends all processes, in a process that ends itself. */
  abandon(): void {
    for (const node of this.#nodes) node.kill('SIGKILL')
    process.kill(this.server.pid, 'SIGQUIT')
  }

  async close(): Promise<void> {
    for (const node of this.#nodes) node.kill('SIGKILL')
    for (const network of [...this.#networks, ...this.#redisNetworks]) network.close()
    await this.redis?.end()
    await this.server.stop()
    rmSync(this.server.folder, { recursive: true, force: true })
  }
}
