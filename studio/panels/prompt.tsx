import { useQuery } from '../app/query.ts'
import { useSession } from '../app/session.tsx'
import { Failed, Loading } from '../parts/states.tsx'
import type { PanelProps } from '../thread/panel.tsx'

/** The prompt that the next call of the model would get, part by part. Nothing is sent or stored. */
export function PromptPanel({ thread, scope, agentId }: PanelProps) {
  const { client } = useSession()
  const { threadId, resourceId } = scope
  const { data, error, isLoading, reload } = useQuery(
    `prompt ${agentId} ${threadId}`,
    () =>
      client.getAgent(agentId).explainPrompt('(your next message)', {
        memory: { thread: threadId, ...(resourceId === undefined ? {} : { resource: resourceId }) },
      }),
    { version: thread.messages.length },
  )
  if (isLoading) return <Loading />
  if (!data) return <Failed error={error} onRetry={reload} />
  return (
    <>
      <p className="meta">
        The next call: about {data.tokens.toLocaleString()} tokens, {data.bytes.toLocaleString()} bytes.
      </p>
      <table className="list parts">
        <thead>
          <tr>
            <th scope="col">Source</th>
            <th scope="col">Text</th>
            <th scope="col" className="number">
              Tokens
            </th>
          </tr>
        </thead>
        <tbody>
          {data.parts.map((part, index) => (
            <tr key={index}>
              <td>
                <span className={`label source-${part.source}`}>{part.source}</span>
              </td>
              <td>
                <span className="clip">{part.preview}</span>
              </td>
              <td className="number">{part.tokens.toLocaleString()}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}
