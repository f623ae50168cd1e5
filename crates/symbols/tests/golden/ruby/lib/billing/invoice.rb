require_relative '../billing'

module Billing
  module Printable
    def print(io: $stdout)
      io.puts(to_s)
    end
  end

  class Invoice < Document::Base
    include Comparable, Printable
    extend Enumerable

    LIMITS = { small: 10 }.freeze
    Line = Struct.new(:price, :count) do
      def total = price * count
    end
    Missing = Class.new(Error)

    attr_accessor :lines, :customer
    attr_reader :id

    class << self
      attr_writer :store

      def load(path, strict: true, **options)
        new(JSON.parse(File.read(path)))
      end

      private

      def cache; end
    end

    def initialize(lines, customer = nil, *rest, id:, note: 'none', **options, &block)
      @lines = lines
    end

    def <=>(other) = total <=> other.total
    def [](index) = lines[index]
    def customer=(value)
      @customer = value
    end
    def paid?; end
    private def checksum!; end

    define_method(:total) { lines.sum(&:total) }
    define_method('sum of all') do |factor|
      factor * total
    end
    alias size total
    alias_method :count, :total

    %w[open closed].each do |state|
      define_method("#{state}?") { @state == state }
    end
  end

  class Invoice::Draft < Invoice
  end

  def Invoice.empty
    Draft.new([], id: 0)
  end
end
