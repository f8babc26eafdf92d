import { memo, useMemo, type ReactNode } from 'react'
import type { Token, Tokens } from 'marked'
import { tokensOf } from './markdown-tokens.ts'

/**
 * Markdown as React elements. No HTML is ever made of it: tags in the text are shown as text, images are a line with their address, and
 * only links to http, https and mailto are links.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => tokensOf(text), [text])
  if (!blocks) return <p className="plain">{text}</p>
  return (
    <div className="markdown">
      {blocks.map((token, index) => (
        <Block key={index} raw={token.raw} token={token} />
      ))}
    </div>
  )
})

/** Equal source gives the equal block, so that only the last block of a growing text is drawn again. */
const Block = memo(
  function Block({ token }: { raw: string; token: Token }) {
    return block(token)
  },
  (before, after) => before.raw === after.raw,
)

function block(token: Token): ReactNode {
  switch (token.type) {
    case 'space':
      return null
    case 'heading':
      // The page has its own outline: headings of a text are below it.
      return <p className={`heading heading-${Math.min((token as Tokens.Heading).depth, 3)}`}>{spans(token)}</p>
    case 'paragraph':
      return <p>{spans(token)}</p>
    case 'text':
      return <p>{spans(token)}</p>
    case 'blockquote':
      return <blockquote>{blocks(token)}</blockquote>
    case 'code': {
      const { text, lang } = token as Tokens.Code
      return (
        <pre className="code" data-lang={lang === '' ? undefined : lang} tabIndex={0}>
          <code>{text}</code>
        </pre>
      )
    }
    case 'list': {
      const { ordered, start, items } = token as Tokens.List
      const listed = items.map((item, index) => <li key={index}>{listItem(item)}</li>)
      return ordered ? <ol start={typeof start === 'number' ? start : 1}>{listed}</ol> : <ul>{listed}</ul>
    }
    case 'table':
      return table(token as Tokens.Table)
    case 'hr':
      return <hr />
    default:
      return <p>{token.raw}</p>
  }
}

function blocks(token: Token): ReactNode {
  const { tokens = [] } = token as { tokens?: Token[] }
  return tokens.map((inner, index) => <Block key={index} raw={inner.raw} token={inner} />)
}

function listItem(item: Tokens.ListItem): ReactNode {
  return item.tokens.map((token, index) =>
    token.type === 'text' ? <span key={index}>{spans(token)}</span> : <Block key={index} raw={token.raw} token={token} />,
  )
}

function table({ header, rows }: Tokens.Table): ReactNode {
  return (
    <div className="table-scroll" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {header.map((cell, index) => (
              <th key={index} scope="col">
                {inlines(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, index) => (
                <td key={index}>{inlines(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function spans(token: Token): ReactNode {
  const { tokens, text } = token as { tokens?: Token[]; text?: string }
  return tokens ? inlines(tokens) : text
}

function inlines(tokens: readonly Token[]): ReactNode {
  return tokens.map((token, index) => <span key={index}>{span(token)}</span>)
}

function span(token: Token): ReactNode {
  switch (token.type) {
    case 'strong':
      return <strong>{spans(token)}</strong>
    case 'em':
      return <em>{spans(token)}</em>
    case 'del':
      return <del>{spans(token)}</del>
    case 'codespan':
      return <code>{decoded((token as Tokens.Codespan).text)}</code>
    case 'br':
      return <br />
    case 'link': {
      const { href } = token as Tokens.Link
      if (!/^(?:https?:|mailto:)/i.test(href)) return token.raw
      return (
        <a href={href} target="_blank" rel="noopener noreferrer">
          {spans(token)}
        </a>
      )
    }
    case 'image': {
      // Nothing is loaded from an address that a model wrote: that would send data there.
      const { href, text } = token as Tokens.Image
      return (
        <span className="chip">
          image {text === '' ? '' : `“${text}” `}
          <code>{href}</code>
        </span>
      )
    }
    case 'escape':
    case 'text':
      return (token as Tokens.Text).tokens ? spans(token) : decoded((token as Tokens.Text).text)
    default:
      return token.raw
  }
}

const entities: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }

/** The lexer escapes some characters for HTML; React needs the text. */
function decoded(text: string): string {
  return text.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (entity) => entities[entity] ?? entity)
}
