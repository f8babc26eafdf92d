import { useState, type FormEvent } from 'react'

/** Asks for a key. The place that was opened stays in the address, and is shown after that. */
export function SignIn({ wasRejected, onKey }: { wasRejected: boolean; onKey: (key: string) => void }) {
  const [key, setKey] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (key.trim() !== '') onKey(key.trim())
  }
  return (
    <main className="centered">
      <form className="card sign-in" onSubmit={submit}>
        <h1>Heed Studio</h1>
        <p>This server needs a key: one of its API keys, or a token that it accepts.</p>
        <label htmlFor="key">Key</label>
        <input
          id="key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          autoFocus
          value={key}
          onChange={(event) => setKey(event.target.value)}
          aria-invalid={wasRejected}
          aria-describedby="key-note"
        />
        <p id="key-note" className={wasRejected ? 'problem' : 'meta'} role={wasRejected ? 'alert' : undefined}>
          {wasRejected ? 'The server rejected this key.' : 'The page sends it to this server only, and forgets it when it is closed.'}
        </p>
        <button type="submit" className="primary">
          Open
        </button>
      </form>
    </main>
  )
}
