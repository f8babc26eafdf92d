// npm run dev: the agents (heed dev, with Studio) and the page (Vite, which passes /api on to them). Ctrl-C ends both.
import { spawn } from 'node:child_process'

const port = process.env.PORT ?? '4111'
const options = { stdio: 'inherit', shell: process.platform === 'win32', env: { ...process.env, PORT: port } } as const
const programs = [spawn('heed', ['dev', '--port', port], options), spawn('vite', [], options)]

function end() {
  for (const program of programs) program.kill('SIGTERM')
}
for (const program of programs) {
  program.once('error', ({ message }) => console.error(message))
  // One without the other is of no use.
  program.once('exit', (code) => {
    process.exitCode ||= code ?? 0
    end()
  })
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end)
