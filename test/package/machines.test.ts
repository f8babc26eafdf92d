import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkMachines, drawMachine, machinesPage, withDrawings } from '../../scripts/checks/machines.ts'

const root = join(import.meta.dirname, '../..')

describe('the drawings of the machines', () => {
  it('show what the tables say', () => {
    expect(checkMachines(root).problems).toEqual([])
  })

  it('are found stale when a line is missing, and drawn again', () => {
    const page = readFileSync(join(root, machinesPage), 'utf8')
    const stale = page.replace(/^ {2}idle --> .*\n/m, '')
    expect(stale).not.toBe(page)
    expect(withDrawings(stale)).toBe(page)
  })

  it('need their place in the page', () => {
    expect(() => withDrawings('# Threads')).toThrow('has no place for the thread')
  })

  it('begin with the first state and end where no way leads out', () => {
    expect(drawMachine({ on: { press: 'off' }, off: {} })).toBe('```mermaid\nstateDiagram-v2\n  [*] --> on\n  on --> off: press\n  off --> [*]\n```')
  })
})
