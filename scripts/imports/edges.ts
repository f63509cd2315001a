import * as ts from 'typescript/unstable/ast'

/** One edge out of a file. `names` is what it takes from the other side; undefined means anything. */
export type Edge = { specifier: string; names: readonly string[] | undefined; isDynamic: boolean }

/** What makes one file depend on another: import, export from, import(), require(), new URL(file), typeof import(). */
export function edgeOf(node: ts.Node): Edge | undefined {
  if (ts.isImportDeclaration(node)) return edge(node.moduleSpecifier, importedNames(node.importClause))
  if (ts.isExportDeclaration(node)) return edge(node.moduleSpecifier, exportedNames(node.exportClause))
  if (ts.isImportTypeNode(node))
    return ts.isLiteralTypeNode(node.argument) ? edge(node.argument.literal, undefined) : undefined
  if (ts.isCallExpression(node)) return callEdge(node)
  if (ts.isNewExpression(node)) return urlEdge(node)
  return undefined
}

function edge(specifier: ts.Node | undefined, names: Edge['names'], isDynamic = false) {
  if (specifier === undefined || !ts.isStringLiteral(specifier)) return undefined
  return { specifier: specifier.text, names, isDynamic }
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

/** `import(x)`, `require(x)`, `require.resolve(x)`, `import.meta.resolve(x)`: only the first loads lazily. */
function callEdge({ expression, arguments: [first] }: ts.CallExpression) {
  if (expression.kind === ts.SyntaxKind.ImportKeyword) return edge(first, undefined, true)
  const callee = ts.isPropertyAccessExpression(expression) && expression.name.text === 'resolve'
  const target = callee ? expression.expression : expression
  const isRequire = ts.isIdentifier(target) && target.text === 'require'
  return isRequire || (callee && ts.isMetaProperty(target)) ? edge(first, undefined) : undefined
}

/** `new URL('./worker.ts', import.meta.url)`: how a worker thread names its entry. */
function urlEdge({ expression, arguments: list }: ts.NewExpression) {
  const [first] = list ?? []
  if (!ts.isIdentifier(expression) || expression.text !== 'URL') return undefined
  const found = edge(first, undefined)
  return found && /^\.{1,2}\/.*\.m?ts$/.test(found.specifier) ? found : undefined
}
