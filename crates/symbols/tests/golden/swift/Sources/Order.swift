import Foundation
@testable import Stock

public protocol Priced: AnyObject, Codable {
    associatedtype Currency
    var total: Int { get }
    func label(verbose: Bool) -> String
    init(text: String)
}

@propertyWrapper
public struct Clamped<Value: Comparable> {
    public var wrappedValue: Value
    private let range: ClosedRange<Value>
    public init(wrappedValue: Value, _ range: ClosedRange<Value>) { self.range = range; self.wrappedValue = wrappedValue }
}

open class Order<T>: Document, Priced where T: Hashable {
    static let limit = 100
    @Clamped(0...10) private(set) var count: Int = 0, other = 1
    weak var delegate: OrderDelegate?
    var total: Int { lines.reduce(0) { $0 + $1.price } }
    lazy var cache: [String: Int] = [:]

    required public init?(text: String, count: Int = 1) { super.init() }
    convenience init() { self.init(text: "") }
    deinit { close() }

    @discardableResult
    public func ship(to warehouse: Warehouse, _ tags: String..., then: @escaping (T) -> Void = { _ in }) async throws -> Result<T, Error> {
        func local() {}
        try await warehouse.reserve(self)
        return .success(first())
    }

    class func make<U>(_ value: U) -> Order where U: Priced { Order(text: "\(value)") }
    subscript(index: Int) -> Line { get { lines[index] } }
    static func == (left: Order, right: Order) -> Bool { true }

    struct Line { let price: Int }
    enum Failure: Error { case missing(String), empty }
    typealias Handler = (Order) -> Void
}

indirect enum Tree<T>: Sequence {
    case leaf
    case node(left: Tree, value: T, right: Tree)
    var depth: Int { 0 }
}

extension Order: CustomStringConvertible {
    var description: String { label(verbose: true) }
    func label(verbose: Bool = false) -> String { "order" }
}

actor Registry {
    private var orders: [String: Int] = [:]
    func add(_ name: String) { orders[name] = 1 }
}

func topLevel<T>(_ value: T, count n: Int = 1) -> T { value }
let shared = Registry()
infix operator <+>
