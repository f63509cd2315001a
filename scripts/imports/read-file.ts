import * as ts from 'typescript/unstable/ast'
import { type Edge, edgeOf } from './edges.ts'

export type Import = Edge & { line: number }
export type Export = { name: string; line: number; isType: boolean }
export type Mention = { name: string; line: number }

/** A function with a block as its body, and how many lines it has from its first to its last. */
export type FunctionFacts = { name: string; line: number; lineCount: number }

export type FileFacts = {
  text: string
  imports: Import[]
  exports: Export[]
  functions: FunctionFacts[]
  /** The lines with `export * from`. */
  barrels: number[]
  /** Identifiers used as values or types, except property names and the operand of `typeof` in a type. */
  mentions: Mention[]
  /** Names that the file declares, in any scope. */
  bound: Set<string>
}

/** Reads the facts that the checks need from a parsed file. */
export function readFile(file: ts.SourceFile): FileFacts {
  const { text } = file
  const facts: FileFacts = {
    text,
    imports: [],
    exports: [],
    functions: [],
    barrels: [],
    mentions: [],
    bound: new Set(),
  }
  const lineAt = (position: number) => file.getLineAndCharacterOfPosition(position).line + 1
  const lineOf = (node: ts.Node) => lineAt(node.getStart(file))
  const visit = (node: ts.Node, parent: ts.Node) => {
    if (ts.isTypeQueryNode(node)) return
    if (ts.isIdentifier(node)) readIdentifier(node, parent, lineOf(node), facts)
    const edge = edgeOf(node)
    if (edge) facts.imports.push({ ...edge, line: lineOf(node) })
    if (hasBlock(node))
      facts.functions.push({
        name: nameOf(node, parent),
        line: lineOf(node),
        lineCount: lineAt(node.end) - lineOf(node) + 1,
      })
    node.forEachChild((child) => visit(child, node))
  }
  for (const statement of file.statements) {
    readExport(statement, lineOf(statement), facts)
    visit(statement, file)
  }
  return facts
}

const hasBlock = (node: ts.Node) =>
  'body' in node && node.body !== undefined && ts.isFunctionLikeDeclaration(node) && ts.isBlock(node.body)

/** The name of a function, or of the variable or property that it is the value of. */
function nameOf(node: ts.Node, parent: ts.Node): string {
  for (const named of [node, parent])
    if ('name' in named && named.name !== undefined) {
      const name = named.name as ts.Node
      if (ts.isIdentifier(name) || ts.isPrivateIdentifier(name)) return name.text
    }
  return ts.isConstructorDeclaration(node) ? 'constructor' : 'a function'
}

/** Notes what an export statement, or a declaration with `export`, exports. */
function readExport(statement: ts.Statement, line: number, { exports, barrels }: FileFacts): void {
  if (ts.isExportAssignment(statement)) exports.push({ name: 'default', line, isType: false })
  if (ts.isExportDeclaration(statement)) {
    const { exportClause, isTypeOnly } = statement
    if (exportClause === undefined) barrels.push(line)
    else if (ts.isNamedExports(exportClause))
      for (const { name, isTypeOnly: isType } of exportClause.elements)
        exports.push({ name: name.text, line, isType: isType || isTypeOnly })
  }
  if (!hasModifier(statement, ts.SyntaxKind.ExportKeyword)) return
  if (hasModifier(statement, ts.SyntaxKind.DefaultKeyword)) {
    exports.push({ name: 'default', line, isType: false })
    return
  }
  const isType = ts.isTypeAliasDeclaration(statement) || ts.isInterfaceDeclaration(statement)
  for (const name of declaredNames(statement)) exports.push({ name, line, isType })
}

function hasModifier(node: ts.Node, kind: ts.SyntaxKind): boolean {
  const modifiers = 'modifiers' in node && Array.isArray(node.modifiers) ? node.modifiers : []
  return modifiers.some((modifier: ts.Node) => modifier.kind === kind)
}

function declaredNames(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.flatMap(({ name }) => bindingNames(name))
  const name = 'name' in statement ? (statement.name as ts.Node | undefined) : undefined
  return name !== undefined && ts.isIdentifier(name) ? [name.text] : []
}

function bindingNames(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text]
  return name.elements.flatMap((element) => ('name' in element && element.name ? bindingNames(element.name) : []))
}

function readIdentifier(node: ts.Identifier, parent: ts.Node, line: number, { mentions, bound }: FileFacts): void {
  if (isBinding(node, parent)) bound.add(node.text)
  else if (!isPropertyName(node, parent)) mentions.push({ name: node.text, line })
}

function isBinding(node: ts.Identifier, parent: ts.Node): boolean {
  return 'name' in parent && parent.name === node && (BINDERS.some((is) => is(parent)) || hasBody(parent))
}

const BINDERS = [
  ts.isVariableDeclaration,
  ts.isParameterDeclaration,
  ts.isBindingElement,
  ts.isImportSpecifier,
  ts.isImportClause,
  ts.isNamespaceImport,
  ts.isTypeAliasDeclaration,
  ts.isInterfaceDeclaration,
  ts.isClassDeclaration,
]

const hasBody = (node: ts.Node) => ts.isFunctionDeclaration(node) || ts.isFunctionExpression(node)

/** Whether the identifier is the name of a property (`x.name`, `{ name: x }`, `name(): void`) rather than of a variable. */
function isPropertyName(node: ts.Identifier, parent: ts.Node): boolean {
  if (ts.isShorthandPropertyAssignment(parent)) return false
  if ('propertyName' in parent && parent.propertyName === node) return true
  if (ts.isPropertyAccessExpression(parent) && isGlobalThis(parent.expression)) return false
  return 'name' in parent && parent.name === node
}

const isGlobalThis = (node: ts.Node) => ts.isIdentifier(node) && node.text === 'globalThis'
