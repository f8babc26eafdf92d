import { useEffect, useRef, useState } from 'react'

interface Shortcut {
  /** As it is shown: `g t`, `mod+Enter`, `?`. */
  keys: string
  label: string
  group: string
}

interface Registered extends Shortcut {
  run: () => void
}

const registered = new Map<symbol, Registered>()

const isApple = /Mac|iPhone|iPad/.test(navigator.platform)

/** The keys as this system names them. */
export function shown(keys: string): string {
  return keys
    .replaceAll('mod', isApple ? '⌘' : 'Ctrl')
    .replaceAll('+', isApple ? '' : '+')
    .replaceAll('shift', isApple ? '⇧' : 'Shift')
}

/** Calls `run` on these keys while the component is mounted. Single letters don't act inside fields. */
export function useShortcut(keys: string, label: string, group: string, run: () => void): void {
  const latest = useRef(run)
  latest.current = run
  useEffect(() => {
    const id = Symbol(keys)
    registered.set(id, { keys, label, group, run: () => latest.current() })
    return () => void registered.delete(id)
  }, [keys, label, group])
}

/** The shortcuts of the view that is shown. */
function shortcuts(): Shortcut[] {
  const byKeys = new Map<string, Shortcut>()
  for (const one of registered.values()) byKeys.set(`${one.group} ${one.keys}`, one)
  return [...byKeys.values()]
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

/** How long the second key of a pair may take. */
const pairMs = 1_000

/** Listens to the keyboard for all registered shortcuts. */
export function useKeyboard(): void {
  const [prefix] = useState<{ key: string; at: number }>({ key: '', at: 0 })
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return
      const mod = isApple ? event.metaKey : event.ctrlKey
      const name = `${mod ? 'mod+' : ''}${event.shiftKey && event.key.length > 1 ? 'shift+' : ''}${event.key}`
      if (isField(event.target) && !mod) return
      if (!mod && (event.altKey || event.metaKey || event.ctrlKey)) return
      const pair = event.timeStamp - prefix.at < pairMs && prefix.key !== '' ? `${prefix.key} ${event.key}` : undefined
      const all = [...registered.values()].reverse()
      const found = all.find(({ keys }) => keys === pair) ?? all.find(({ keys }) => keys === name)
      prefix.key = found ? '' : event.key
      prefix.at = event.timeStamp
      if (!found) return
      event.preventDefault()
      found.run()
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [prefix])
}

/** All shortcuts of the view, by group. */
export function ShortcutHelp({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (isOpen && !dialog.current?.open) dialog.current?.showModal()
    if (!isOpen) dialog.current?.close()
  }, [isOpen])
  const groups = Map.groupBy(isOpen ? shortcuts() : [], ({ group }) => group)
  return (
    <dialog ref={dialog} className="card dialog" onClose={onClose} aria-labelledby="keys-title">
      <h2 id="keys-title">Keyboard</h2>
      <div className="key-groups">
        {[...groups].map(([group, keys]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {keys.map((one) => (
                <div key={one.keys}>
                  <dt>
                    <kbd>{shown(one.keys)}</kbd>
                  </dt>
                  <dd>{one.label}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}
