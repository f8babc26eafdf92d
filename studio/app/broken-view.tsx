import { Component, type ReactNode } from 'react'

interface Props {
  /** Another place may be shown where this one could not be. */
  place: string
  children: ReactNode
}

interface State {
  place: string
  error?: unknown
}

/** In place of a view that could not be shown. The rest of the page stays: a server that was updated has no files of the page before. */
export class BrokenView extends Component<Props, State> {
  override state: State = { place: this.props.place }

  static getDerivedStateFromError(error: unknown): Pick<State, 'error'> {
    return { error }
  }

  static getDerivedStateFromProps({ place }: Props, state: State): Partial<State> | null {
    return place === state.place ? null : { place, error: undefined }
  }

  override render(): ReactNode {
    const { error } = this.state
    if (error === undefined) return this.props.children
    const isMissing = /dynamically imported module|module script failed|error loading/i.test(String(error))
    return (
      <div className="page">
        <h1>{isMissing ? 'Studio was updated, or the server does not answer' : 'This view failed'}</h1>
        <p>
          {isMissing
            ? 'A file of this view could not be loaded. Reload the page; messages that you have not sent are lost with it.'
            : `${String(error)}. The other views work; what you did is stored.`}
        </p>
        <div className="actions">
          <button type="button" className="primary" onClick={() => window.location.reload()}>
            Reload
          </button>
        </div>
      </div>
    )
  }
}
