use super::*;

fn strip(source: &str) -> String {
    strip_types(source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// The stripped source with runs of blanks as one, which is easier to read.
fn squeezed(source: &str) -> String {
    strip(source).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn types_are_left_out_and_everything_else_stays() {
    for (source, wanted) in [
        ("let a: number = 1;", "let a = 1;"),
        ("const f = <T,>(x: T, y?: string): T => x;", "const f = (x , y ) => x;"),
        (
            "async function f<T extends A>(this: Window, ...rest: T[]): Promise<void> {}",
            "async function f ( ...rest ) {}",
        ),
        ("const x = y as unknown as T;", "const x = y ;"),
        ("const x = { a: 1 } satisfies Record<string, number>;", "const x = { a: 1 } ;"),
        ("a!.b!()[0]!;", "a .b ()[0] ;"),
        (
            "let a: import(\"./b\").Type<import('c').D>[] = f(); const m: typeof import(\"x\") = await import(\"x\");",
            "let a = f(); const m = await import(\"x\");",
        ),
        ("const x = <T>y;", "const x = y;"),
        ("new Map<string, number>([[1, 2]] as const);", "new Map ([[1, 2]] );"),
        ("function isA(x: unknown): x is A { return true }", "function isA(x ) { return true }"),
        ("function check(x: unknown): asserts x {}", "function check(x ) {}"),
        ("let x!: number;", "let x ;"),
        ("for (const [a, b] of x as [string, number][]) {}", "for (const [a, b] of x ) {}"),
        ("try {} catch (e: unknown) {}", "try {} catch (e ) {}"),
        ("const t = `${x as string}`;", "const t = `${x }`;"),
        ("f<string>(1); g.h<A, B>(2);", "f (1); g.h (2);"),
        ("export default function (pi: ExtensionAPI) {}", "export default function (pi ) {}"),
    ] {
        assert_eq!(squeezed(source), wanted, "{source}");
    }
}

#[test]
fn declarations_of_types_are_empty_statements() {
    for source in [
        "interface A { x: number }",
        "export interface A<T> extends B { x: T }",
        "type A = { [key: string]: number } | string;",
        "export type A = B;",
        "declare const x: number;",
        "declare global { interface Window { x: number } }",
        "export declare function f(): void;",
        "import type { A } from 'x';",
        "import type A from 'x';",
        "export type { A } from 'x';",
        "function f(a: string): void;",
    ] {
        let left = squeezed(source);
        assert!(left.chars().all(|character| matches!(character, ';' | ' ')), "{source}: {left}");
    }
}

#[test]
fn imports_of_types_are_left_out_and_those_of_values_stay() {
    for (source, wanted) in [
        ("import { A, b, type C } from 'x'; b(1 as A);", "import { b, } from 'x'; b(1 );"),
        ("import { A } from 'x'; let a: A;", "; let a ;"),
        ("import d, { A } from 'x'; d();", "import d, { } from 'x'; d();"),
        ("import * as ns from 'x'; ns.f();", "import * as ns from 'x'; ns.f();"),
        ("import * as ns from 'x'; let a: ns.T;", "; let a ;"),
        ("import 'x';", "import 'x';"),
        ("import { a as b } from 'x'; x = { b };", "import { a as b } from 'x'; x = { b };"),
        ("import { A } from 'x'; export { A };", "import { A } from 'x'; export { A };"),
        (
            "import { A } from 'x'; class B extends A<string> {}",
            "import { A } from 'x'; class B extends A {}",
        ),
        (
            "import { A } from 'x'; class B { private a: number = new A(); }",
            "import { A } from 'x'; class B { a = new A(); }",
        ),
        ("import { type A } from 'x';", ";"),
        ("export { type A, b } from 'x';", "export { b } from 'x';"),
    ] {
        assert_eq!(squeezed(source), wanted, "{source}");
    }
}

#[test]
fn members_of_classes() {
    for (source, wanted) in [
        (
            "class A { private readonly x: number = 1; static y?: string; declare z: B; #p!: T }",
            "class A { x = 1; static y ; ; #p ; }",
        ),
        (
            "abstract class A<T> extends B<T> implements C, D { abstract f(): void; override g(): T { return 1 } }",
            "class A extends B { ; g() { return 1 } }",
        ),
        (
            "class A { constructor(private a: number, public readonly b = 2, c?: string) { go() } }",
            "class A { constructor( a , b = 2, c ) {this.a = a;this.b = b; go() } }",
        ),
        (
            "class A extends B { constructor(private a: number) { super(a); go() } }",
            "class A extends B { constructor( a ) { super(a);;this.a = a; go() } }",
        ),
        ("class A { f(): void; f(x?: number): void {} [key: string]: any }", "class A { ; f(x ) {} ; }"),
        (
            "class A { get x(): number { return 1 } set x(v: number) {} }",
            "class A { get x() { return 1 } set x(v ) {} }",
        ),
    ] {
        assert_eq!(squeezed(source), wanted, "{source}");
    }
}

#[test]
fn enums_are_objects() {
    assert_eq!(
        squeezed("enum A { X, Y = 5, Z, S = 's' }"),
        "var A = ((A) => { A[A[\"X\"] = 0] = \"X\";A[A[\"Y\"] = 5] = \"Y\";A[A[\"Z\"] = A[\"Y\"] + 1] = \"Z\";\
         A[\"S\"] = 's'; return A; })({});"
    );
    assert!(strip("export enum A {\n X,\n Y\n}\nlet z = 1;").ends_with("\n\n\n\nlet z = 1;"));
}

#[test]
fn lines_and_columns_stay() {
    let source =
        "interface A {\n  x: number;\n}\nconst f = (\n  a: string, // 一\n): Promise<\n  void\n> => go(a);\n";
    let stripped = strip(source);
    assert_eq!(stripped.lines().count(), source.lines().count());
    assert_eq!(stripped.lines().nth(4), Some("  a        , // 一"));
    // No line break before `=>`.
    assert!(stripped.contains(") => go(a);"), "{stripped}");
}

#[test]
fn statements_do_not_join_where_a_type_was() {
    assert_eq!(squeezed("let a = b as T\n(c)"), "let a = b ; (c)");
    assert_eq!(squeezed("a()\ninterface B {}\n(c)"), "a() ; (c)");
}

#[test]
fn what_cannot_be_stripped_is_an_error_with_its_line() {
    assert_eq!(
        strip_types("\nnamespace A { export const x = 1 }"),
        Err(StripError::Unsupported { line: 2, what: "a namespace" })
    );
    assert_eq!(strip_types("@x class A {}"), Err(StripError::Unsupported { line: 1, what: "a decorator" }));
    let error = strip_types("let a = 1;\nlet = = 2;\n").unwrap_err();
    assert!(matches!(error, StripError::Syntax { line: 2, .. }), "{error}");
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(matches!(strip_types(&deep), Err(StripError::TooDeep { .. })));
}
