import { useEffect, useRef, useState, type ReactNode } from 'react'
import { useThreads } from '../views/thread-list.ts'
import { Status } from '../parts/states.tsx'
import { ShortcutHelp, useKeyboard, useShortcut } from './keys.tsx'
import { hrefOf, Link, navigate, usePlace } from './router.tsx'
import { useSession } from './session.tsx'
import { applyTheme, nextTheme, readTheme } from './theme.ts'
import { useAttention } from '../views/attention-list.ts'

const views = [
  { id: 'threads', label: 'Threads', key: 't' },
  { id: 'attention', label: 'Attention', key: 'x' },
  { id: 'inbox', label: 'Inbox', key: 'i' },
  { id: 'agents', label: 'Agents', key: 'a' },
  { id: 'workflows', label: 'Workflows', key: 'f' },
  { id: 'schedules', label: 'Schedules', key: 's' },
  { id: 'watches', label: 'Watches', key: 'w' },
  { id: 'scores', label: 'Scores', key: 'c' },
  { id: 'processes', label: 'Processes', key: 'p' },
] as const

/** Navigation beside the view; below it on a phone. */
export function Shell({ children }: { children: ReactNode }) {
  const [isHelpOpen, setHelpOpen] = useState(false)
  const [theme, setTheme] = useState(readTheme)
  const {
    segments: [current = 'threads', id],
  } = usePlace()
  const { signOut } = useSession()
  const attention = useAttention()
  useKeyboard()
  for (const view of views) useShortcut(`g ${view.key}`, view.label, 'Go to', () => navigate(hrefOf([view.id])))
  useShortcut('?', 'Show these keys', 'General', () => setHelpOpen(true))
  useShortcut('y', 'Copy the link to this view', 'General', () => void navigator.clipboard.writeText(window.location.href))
  // On a phone the navigation is a line that is longer than the screen.
  const navigation = useRef<HTMLElement>(null)
  useEffect(() => {
    // Chromium's `scrollIntoView()` returns a promise, and React takes what an effect returns for its cleanup.
    navigation.current?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' })
  }, [current])
  const changeTheme = () => {
    const next = nextTheme(theme)
    applyTheme(next)
    setTheme(next)
  }
  return (
    <div className="shell" data-view={current} data-open={id === undefined ? undefined : ''}>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <nav ref={navigation} className="navigation" aria-label="Studio">
        <Link to={[]} className="brand">
          Heed <span>Studio</span>
        </Link>
        <ul>
          {views.map((view) => (
            <li key={view.id}>
              <Link to={[view.id]} aria-current={current === view.id ? 'page' : undefined}>
                {view.label}
                {view.id === 'attention' && attention.total > 0 && <b className="count">{attention.total}</b>}
              </Link>
            </li>
          ))}
        </ul>
        <RecentThreads openId={current === 'threads' ? id : undefined} />
        <div className="navigation-foot">
          <button type="button" className="quiet" onClick={() => setHelpOpen(true)}>
            Keys <kbd>?</kbd>
          </button>
          <button type="button" className="quiet" onClick={changeTheme}>
            Theme: {theme}
          </button>
          {signOut && (
            <button type="button" className="quiet" onClick={signOut}>
              Sign out
            </button>
          )}
        </div>
      </nav>
      <main id="main" className="view" tabIndex={-1}>
        {children}
      </main>
      <ShortcutHelp isOpen={isHelpOpen} onClose={() => setHelpOpen(false)} />
    </div>
  )
}

/** The threads that changed last. */
function RecentThreads({ openId }: { openId: string | undefined }) {
  const { data } = useThreads({ perPage: 30 })
  const threads = data?.threads ?? []
  if (threads.length === 0) return null
  return (
    <section className="recent" aria-label="Recent threads">
      <h2>Recent</h2>
      <ul>
        {threads.map((thread) => (
          <li key={thread.id}>
            <Link to={['threads', thread.id]} aria-current={openId === thread.id ? 'page' : undefined} title={thread.id}>
              <Status status={thread.status} />
              <span className="name">{thread.title || thread.id}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
