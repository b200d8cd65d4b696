// Early errors: rules about a text that has a syntax tree, which no grammar carries. Babel names its errors; those of
// oxc are told by their messages.

/** Babel's names, in every kind of file. */
const ALWAYS = new Set([
  // Names: declared twice, exported twice, never declared, private elsewhere.
  "DuplicateDefaultExport",
  "DuplicateExport",
  "InvalidPrivateFieldResolution",
  "LabelRedeclaration",
  "ModuleExportUndefined",
  "ParamDupe",
  "PrivateNameRedeclaration",
  "VarRedeclaration",
  // Members of certain names.
  "ConstructorClassField",
  "ConstructorClassPrivateField",
  "ConstructorIsAccessor",
  "ConstructorIsAsync",
  "ConstructorIsGenerator",
  "DuplicateConstructor",
  "DuplicateProto",
  "ModuleAttributesWithDuplicateKeys",
  "StaticPrototype",
  // Jumps and words whose place is a matter of what lies around, functions excepted.
  "ArgumentsInClass",
  "IllegalBreakContinue",
  "SuperNotAllowed",
  "UnexpectedNewTarget",
  "UnexpectedSuper",
  // What "use strict" forbids.
  "DeletePrivateField",
  "IllegalLanguageModeDirective",
  "StrictDelete",
  "StrictEvalArguments",
  "StrictEvalArgumentsBinding",
  // Letters of a regular expression's flags.
  "DuplicateRegExpFlags",
  "IncompatibleRegExpUVFlags",
  // Texts of names that modules exchange.
  "ModuleExportNameHasLoneSurrogate",
]);

/** Babel's names of what a module's grammar refuses, and a script's only after "use strict". */
const SLOPPY = new Set(["StrictFunction", "StrictNumericEscape", "StrictOctalLiteral", "StrictWith"]);

/** Names in sloppy code, which "use strict" reserves. */
const STRICT_WORDS = new Set("implements interface let package private protected public static yield".split(" "));

/** Babel's names, some misspelt, of rules about modifiers and ambient declarations, which tsc checks after parsing. */
const TYPED = new Set([
  "AbstractMethodHasImplementation",
  "AbstractPropertyHasInitializer",
  "AccessorCannotBeOptional",
  "AccesorCannotDeclareThisParameter",
  "AccesorCannotHaveTypeParameters",
  "ClassMethodHasDeclare",
  "ClassMethodHasReadonly",
  "ConstInitiailizerMustBeStringOrNumericLiteralOrLiteralEnumReference",
  "ConstructorHasTypeParameters",
  "DeclareAccessor",
  "DeclareClassFieldHasInitializer",
  "DeclareFunctionHasImplementation",
  "DuplicateAccessibilityModifier",
  "DuplicateModifier",
  "IncompatibleModifiers",
  "IndexSignatureHasAbstract",
  "IndexSignatureHasAccessibility",
  "IndexSignatureHasDeclare",
  "IndexSignatureHasOverride",
  "IndexSignatureHasStatic",
  "InitializerNotAllowedInAmbientContext",
  "InvalidModifierOnAwaitUsingDeclaration",
  "InvalidModifierOnTypeMember",
  "InvalidModifierOnTypeParameter",
  "InvalidModifierOnTypeParameterPositions",
  "InvalidModifiersOrder",
  "NonAbstractClassHasAbstractMethod",
  "OptionalTypeBeforeRequired",
  "OverrideNotInSubClass",
  "OverrideOnConstructor",
  "PatternIsOptional",
  "PrivateElementHasAbstract",
  "PrivateElementHasAccessibility",
  "ReadonlyForMethodSignature",
  "SetAccesorCannotHaveOptionalParameter",
  "SetAccesorCannotHaveRestParameter",
  "SetAccesorCannotHaveReturnType",
  "TypeModifierIsUsedInTypeExports",
  "TypeModifierIsUsedInTypeImports",
  "TypeImportCannotSpecifyDefaultAndNamed",
  "UnexpectedParameterModifier",
  "UsingDeclarationInAmbientContext",
]);

/** Messages of oxc about the same, and about what Babel does not check. */
const MESSAGES = [
  "'[\\w ]+' modifier .*",
  "'constructor' cannot be used as a parameter property name\\.",
  "'get' and 'set' accessors cannot declare 'this' parameters\\.",
  "(A default export can only be used|An export assignment cannot be used|Global module exports may only) .*",
  "(Class|Enum|Interface|Type alias|Type parameter) name cannot be .*",
  "(Import|Export) declarations .*in a namespace.*",
  "(Type annotation|Type parameters) cannot appear on a constructor declaration\\.?",
  ".* because it is marked abstract\\.",
  ".* in (an already |an )?ambient contexts?\\.",
  "A '(get|set)' accessor cannot .*",
  "A constructor cannot have a `this` parameter\\.",
  "A decorator can only decorate a method implementation, not an overload\\.",
  "A definite assignment assertion '!' is not permitted in this context\\.",
  "A module cannot have multiple default exports\\.",
  "A parameter cannot have a question mark and an initializer\\.",
  "A property cannot be both optional and definite\\.",
  "A required (element|parameter) cannot follow an optional (element|parameter)\\.",
  "A rest parameter cannot be optional",
  "A type-only import can specify a default import or named bindings, but not both\\.",
  "Accessibility modifier already seen\\.",
  "An 'accessor' property cannot be declared optional\\.",
  "An accessibility modifier cannot be used with a private identifier\\.",
  "An accessor cannot have type parameters\\.",
  "An arrow function cannot have a `this` parameter\\.",
  "An enum member cannot have a numeric name\\.",
  "An index signature .*",
  "An overload signature cannot be declared as a generator\\.",
  "Classes (can't|may not) have an? .*",
  "Constructor can't .*",
  "Declarations with (definite assignment assertions|initializers) .*",
  "Duplicate import attribute key `.*`",
  "Duplicated export '.*'",
  "Flag . is mentioned twice in regular expression literal",
  "Only ambient modules can use quoted names\\.",
  "The 'type' modifier cannot be used on a named (import|export) .*",
  "The 'u' and 'v' regular expression flags cannot be enabled at the same time",
  "Unexpected new\\.target expression",
];
const MESSAGE = new RegExp(`^(?:${MESSAGES.join("|")})$`, "s");

/** Tells whether one of Babel's errors is early, in a module or in sloppy code. */
export function isEarly(error, isModule) {
  const name = error.reasonCode;
  if (ALWAYS.has(name) || TYPED.has(name)) return true;
  if (isModule) return false;
  return SLOPPY.has(name) || (name === "UnexpectedReservedWord" && STRICT_WORDS.has(error.details?.reservedWord));
}

/** Tells whether a message of oxc is about an early error. */
export const isEarlyMessage = (message) => MESSAGE.test(message);
