import { lineOf, parse, walk, type SourceFile, type SyntaxNode } from './source.ts'

export interface Import {
  specifier: string
  line: number
  /** `static` is loaded with the file, `lazy` when the code runs, `type` never. */
  kind: 'static' | 'lazy' | 'type'
}

/**
 * What a file imports and re-exports. `import { type A }` counts as `static`: under `verbatimModuleSyntax` the module is
 * still loaded. A lazy import of anything but a literal can't be followed and is left out.
 */
export function importsOf(file: SourceFile): Import[] {
  const found: Import[] = []
  for (const { node } of walk(parse(file))) {
    const specifier = literal(node.source)
    const kind = kindOf(node)
    if (specifier !== undefined && kind) found.push({ specifier, line: lineOf(file, node), kind })
  }
  return found
}

function kindOf(node: SyntaxNode): Import['kind'] | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
      return node.importKind === 'type' ? 'type' : 'static'
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration':
      return node.exportKind === 'type' ? 'type' : 'static'
    case 'TSImportType':
      return 'type'
    case 'ImportExpression':
      return 'lazy'
    default:
      return undefined
  }
}

function literal(node: unknown): string | undefined {
  const value = (node as { value?: unknown } | null | undefined)?.value
  return typeof value === 'string' ? value : undefined
}
