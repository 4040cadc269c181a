/** Asks for a key of the gateway, which the server exchanges for a cookie. The page does not store the key. */
import { useState } from 'preact/hooks'
import type { TeamViewer } from 'tidemark/report'
import type { TeamSource } from '../data/page-source.ts'

interface SignInProps {
  readonly team: TeamSource
  readonly onSignedIn: (viewer: TeamViewer) => void
}

export function SignInView({ team, onSignedIn }: SignInProps) {
  const [key, setKey] = useState('')
  const [error, setError] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const signIn = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    try {
      onSignedIn(await team.signIn(key))
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown.message : String(thrown))
      setBusy(false)
    }
  }
  return (
    <form class="card sign-in" onSubmit={signIn}>
      <h1>Sessions and costs</h1>
      <p class="lead">Sign in with a key of this gateway. A key of your own shows your own sessions.</p>
      <label>
        <span>Key</span>
        <input
          type="password"
          name="key"
          autocomplete="current-password"
          placeholder="tmk_…"
          value={key}
          aria-invalid={error === null ? undefined : true}
          aria-describedby={error === null ? undefined : 'sign-in-error'}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="main" disabled={isBusy || key.trim() === ''}>
        Sign in
      </button>
      {error === null ? null : (
        <p class="bad" id="sign-in-error" role="alert">
          {error}
        </p>
      )}
    </form>
  )
}
