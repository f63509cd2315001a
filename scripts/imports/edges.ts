import * as ts from 'typescript/unstable/ast'

/** `type` edges do not exist at run time; `lazy` ones load when their code runs. */
type Kind = 'type' | 'load' | 'lazy'

/** A dependency of one file on another. `names` is what it imports; undefined means everything. */
export type Edge = { specifier: string; names: readonly string[] | undefined; kind: Kind }

/** Reads an edge from an import, export from, import(), require(), new URL(file, …) or typeof import(). */
export function edgeOf(node: ts.Node): Edge | undefined {
  if (ts.isImportDeclaration(node)) {
    const isType = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
    return edge(node.moduleSpecifier, importedNames(node.importClause), isType ? 'type' : 'load')
  }
  if (ts.isExportDeclaration(node))
    return edge(node.moduleSpecifier, exportedNames(node.exportClause), node.isTypeOnly ? 'type' : 'load')
  if (ts.isImportTypeNode(node))
    return ts.isLiteralTypeNode(node.argument) ? edge(node.argument.literal, undefined, 'type') : undefined
  if (ts.isCallExpression(node)) return callEdge(node)
  if (ts.isNewExpression(node)) return urlEdge(node)
  return undefined
}

function edge(specifier: ts.Node | undefined, names: Edge['names'], kind: Kind): Edge | undefined {
  if (specifier === undefined || !ts.isStringLiteral(specifier)) return undefined
  return { specifier: specifier.text, names, kind }
}

function importedNames(clause: ts.ImportClause | undefined): readonly string[] | undefined {
  if (clause === undefined) return []
  const { name, namedBindings } = clause
  if (namedBindings !== undefined && !ts.isNamedImports(namedBindings)) return undefined
  const named = namedBindings?.elements.map((element) => (element.propertyName ?? element.name).text) ?? []
  return name === undefined ? named : ['default', ...named]
}

function exportedNames(clause: ts.NamedExportBindings | undefined): readonly string[] | undefined {
  if (clause === undefined || !ts.isNamedExports(clause)) return undefined
  return clause.elements.map(({ propertyName, name }) => (propertyName ?? name).text)
}

/** Reads `import(x)`, `require(x)`, `require.resolve(x)` and `import.meta.resolve(x)`. Only the first is lazy. */
function callEdge({ expression, arguments: [first] }: ts.CallExpression) {
  if (expression.kind === ts.SyntaxKind.ImportKeyword) return edge(first, undefined, 'lazy')
  const callee = ts.isPropertyAccessExpression(expression) && expression.name.text === 'resolve'
  const target = callee ? expression.expression : expression
  const isRequire = ts.isIdentifier(target) && target.text === 'require'
  return isRequire || (callee && ts.isMetaProperty(target)) ? edge(first, undefined, 'load') : undefined
}

/** Reads `new URL('./worker.ts', import.meta.url)`, the way to name the entry file of a worker thread. */
function urlEdge({ expression, arguments: list }: ts.NewExpression) {
  const [first] = list ?? []
  if (!ts.isIdentifier(expression) || expression.text !== 'URL') return undefined
  const found = edge(first, undefined, 'load')
  return found && /^\.{1,2}\/.*\.m?ts$/.test(found.specifier) ? found : undefined
}
