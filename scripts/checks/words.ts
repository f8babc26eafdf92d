import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'
import { docsPages } from '../docs/navigation.ts'
import type { CheckResult } from './report.ts'
import { isNode, isTest, languageOf, sourceFiles, type SourceFile, type SyntaxNode } from './source.ts'

/** Phrases that leave the reader to guess the actor or the act, and what to write instead. */
const refused: ReadonlyArray<{ phrase: RegExp; instead: string }> = [
  { phrase: /\bwhoever\b/i, instead: 'name the actor: the caller, the process, the subscriber' },
  { phrase: /\b(?:somebody|anybody|nobody)\b/i, instead: 'name the actor: a caller, a peer, no process' },
  { phrase: /\b(?:is|are|was|were|be|been|being) (?:told|said|heard)\b/i, instead: 'use the act: published, reported, sent, received, stored' },
  { phrase: /\bunless told\b/i, instead: 'by default, or the option that changes it' },
  { phrase: /\bwhat waits\b/i, instead: 'pending signals, queued runs, suspended calls' },
  { phrase: /\bin vain\b/i, instead: 'say what the attempt did not achieve' },
  { phrase: /\bat hand\b/i, instead: 'cached, in memory, prepared' },
  { phrase: /\bfor good\b/i, instead: 'permanently, or until what changes it' },
  { phrase: /\bof nothing\b/i, instead: 'empty' },
  { phrase: /\bthat there (?:is|are) not\b/i, instead: 'unknown, missing' },
  { phrase: /\w*(?:(?:normal|recogn|quant|summar|serial|organ)is(?:e|ing|ation)|behaviour|neighbour|honour|favour|colour)\w*/i, instead: 'American spelling, as the public names have it' },
]

/** Papers of the project, besides the pages of docs/. */
const papers = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'PROTOCOL.md', 'CHANGELOG.md']

/** Folders of sources; of the second, and of tests, the strings are data, so that only comments and the titles of tests are read. */
const shipped = ['src', 'studio']
const around = ['test', 'bench', 'examples', 'scripts']

/** Holds comments, messages, titles of tests and papers to plain technical English. Code in papers and quoted words don't count. */
export function checkWords(root: string): CheckResult {
  const sources = [...shipped, ...around].flatMap((folder) => sourceFiles(root, folder)).filter(({ path }) => !quoting.includes(path))
  const pages = existsSync(join(root, 'docs')) ? docsPages(root) : []
  const texts = [...papers.filter((path) => existsSync(join(root, path))), ...pages]
  const problems = [...sources.flatMap(inSource), ...texts.flatMap((path) => inPaper(path, readFileSync(join(root, path), 'utf8')))]
  return { summary: `${sources.length} source files, ${texts.length} papers`, problems }
}

/** They have the phrases themselves. */
const quoting = ['scripts/checks/words.ts', 'test/package/words.test.ts']

/** Comments, and the strings that are sentences. */
function inSource(file: SourceFile): string[] {
  const onlyTitles = isTest(file.path) || around.some((folder) => file.path.startsWith(`${folder}/`))
  const { program, comments, errors } = parseSync(file.path, file.text, { lang: languageOf(file.path), sourceType: 'module' })
  if (errors[0]) throw new Error(`${file.path} does not parse: ${errors[0].message}`)
  const found = comments.flatMap(({ value, start }) => problemsIn(file.path, lineAt(file.text, start), value))
  const pending: unknown[] = [program]
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (Array.isArray(node)) pending.push(...node)
    else if (isNode(node)) {
      const text = node.type === 'Literal' || node.type === 'JSXText' ? node.value : node.type === 'TemplateElement' ? (node.value as { cooked?: string }).cooked : undefined
      if (onlyTitles) {
        const title = titleOf(node)
        if (title) found.push(...problemsIn(file.path, lineAt(file.text, node.start), title))
      } else if (typeof text === 'string' && /\s\S+\s/.test(text)) found.push(...problemsIn(file.path, lineAt(file.text, node.start), text))
      pending.push(...Object.values(node))
    }
  }
  return found
}

/** The title of a test or a suite: `it('…')`, `describe.each(…)('…')`. */
function titleOf(node: SyntaxNode): string | undefined {
  if (node.type !== 'CallExpression') return undefined
  let callee = node.callee as SyntaxNode
  while (callee.type === 'CallExpression' || callee.type === 'MemberExpression') callee = (callee.callee ?? callee.object) as SyntaxNode
  const [title] = node.arguments as SyntaxNode[]
  if (!title || callee.type !== 'Identifier' || !['it', 'test', 'describe'].includes(callee.name as string)) return undefined
  if (title.type === 'Literal' && typeof title.value === 'string') return title.value
  return title.type === 'TemplateLiteral' ? (title.quasis as SyntaxNode[]).map(({ value }) => (value as { cooked?: string }).cooked).join(' ') : undefined
}

function inPaper(path: string, text: string): string[] {
  // Code and what is quoted from elsewhere keep their line breaks, so that lines keep their numbers.
  const prose = text.replace(/^(?:```|~~~)[\s\S]*?^(?:```|~~~)/gm, blank).replace(/`[^`\n]*`|“[^”]*”|"[^"\n]*"/g, blank)
  return prose.split('\n').flatMap((line, index) => problemsIn(path, index + 1, line))
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ')
}

function problemsIn(path: string, line: number, text: string): string[] {
  return refused.flatMap(({ phrase, instead }) => {
    const found = phrase.exec(text.replace(/\s*\n\s*\*?\s*/g, ' '))?.[0]
    return found === undefined ? [] : [`${path}:${line} "${found}": ${instead}.`]
  })
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
